// Each tensor is reduced to hashes: one for all of it, one for each row and one for each column. Equal lists
// of hashes, sorted, mean the same rows in another order; equal rows on one side and columns on the other,
// the transpose.
#include "convert/compare/diff/order.h"

#include <algorithm>
#include <map>
#include <optional>

#include "convert/compare/diff/diff.h"
#include "convert/compare/diff/siblings.h"
#include "core/base/error.h"
#include "core/base/observer.h"
#include "core/items/dtype.h"
#include "hf/quantized/dequantized_store.h"
#include "io/copy/observed_sink.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/values/tensor_reader.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kMostTensors = 1000;
constexpr i64 kMostBytes = i64{256} << 20;  // of a tensor
constexpr double kLittleInCommon = 0.9;     // cosine

// FNV-1a over whole items.
constexpr u64 kSeed = 0xcbf29ce484222325;
u64 mixed(u64 hash, std::span<const u8> bytes) {
  for (u8 byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

struct Hashes {
  std::vector<u64> rows, columns;  // in order
  u64 all = kSeed;
};

// The hashes of the tensor as a matrix: the last dimension has the columns.
Hashes hashes_of(const Store& store, TensorReader& reader, i64 tensor) {
  std::span<const i64> dims = store.dims(tensor);
  const i64 width = dims.empty() ? 1 : std::max<i64>(dims.back(), 1),
            item = dtype_info(store.dtype(tensor)).bits / 8;
  Hashes out;
  out.columns.assign(static_cast<std::size_t>(width), kSeed);
  i64 column = 0;
  u64 row = kSeed;
  reader.read(tensor, [&](std::span<const u8> bytes, i64) {
    for (i64 at = 0; at < std::ssize(bytes); at += item) {
      std::span<const u8> value = bytes.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(item));
      row = mixed(row, value);
      u64& of_column = out.columns[static_cast<std::size_t>(column)];
      of_column = mixed(of_column, value);
      out.all = mixed(out.all, value);
      if (++column < width) continue;
      out.rows.push_back(row);
      column = 0, row = kSeed;
    }
  });
  return out;
}

std::vector<u64> sorted(std::vector<u64> hashes) {
  std::ranges::sort(hashes);
  return hashes;
}

// Whether the lists have the same hashes in another order. Lists of equal hashes have no order.
bool reordered(const std::vector<u64>& a, const std::vector<u64>& b) {
  return a.size() == b.size() && a.size() > 1 && a != b && sorted(a) == sorted(b);
}

// How many neighbouring rows stay together, at least: "in blocks of 8". 0: they do not all.
i64 block_of(const std::vector<u64>& a, const std::vector<u64>& b) {
  i64 n = std::ssize(a), best = 0;
  std::map<u64, i64> at;
  for (i64 i = 0; i < n; i++)
    // Rows that repeat have no one place
    if (!at.emplace(b[static_cast<std::size_t>(i)], i).second) return 0;
  for (i64 i = 0, length = 0; i < n; i++) {
    length++;
    bool ends =
        i + 1 == n || at[a[static_cast<std::size_t>(i + 1)]] != at[a[static_cast<std::size_t>(i)]] + 1;
    if (ends) best = best == 0 ? length : std::min(best, length), length = 0;
  }
  return best;
}

std::string order_text(const Hashes& a, const Hashes& b) {
  auto blocks = [](const std::vector<u64>& x, const std::vector<u64>& y) {
    i64 block = block_of(x, y);
    return block > 1 ? cat(" (in blocks of ", block, " or more)") : std::string();
  };
  if (reordered(a.rows, b.rows)) return cat("the same rows in another order", blocks(a.rows, b.rows));
  if (reordered(a.columns, b.columns))
    return cat("the same columns in another order", blocks(a.columns, b.columns));
  if (a.rows.size() == b.columns.size() && a.rows.size() > 1 && a.rows == b.columns && a.columns == b.rows)
    return "the transpose of B's";
  return "";
}

// One row's tensor on both sides.
struct Suspect {
  DiffRow* row;
  i64 a, b;  // numbers in the stores
  Hashes of_a{}, of_b{};
};

bool is_suspect(const DiffRow& row) {
  if (row.kind != DiffRow::Kind::kValues || !row.distance) return false;
  std::optional<double> cosine = row.distance->cosine();
  return cosine && *cosine < kLittleInCommon;
}

std::vector<Suspect> suspects_in(const Store& a, const Store& b, std::vector<DiffRow>& rows) {
  std::vector<Suspect> out;
  for (DiffRow& row : rows) {
    if (!is_suspect(row) || out.size() == kMostTensors) continue;
    i64 of_a = find_tensor(a, row.name), of_b = find_tensor(b, row.name);
    if (of_a < 0 || of_b < 0 || a.dtype(of_a) != b.dtype(of_b)) continue;
    if (!std::ranges::equal(a.dims(of_a), b.dims(of_b))) continue;
    if (TensorReader::tensor_bytes(a, of_a) <= kMostBytes) out.push_back({&row, of_a, of_b});
  }
  return out;
}

}  // namespace

void add_order_hints(const std::string& path_a, const std::string& path_b, const OpenOptions& files,
                     std::vector<DiffRow>& rows, Observer& observer) {
  if (std::ranges::none_of(rows, is_suspect)) return;
  std::unique_ptr<Store> a = open_values(path_a, files), b = open_values(path_b, files);
  std::vector<Suspect> suspects = suspects_in(*a, *b, rows);
  StoreFiles files_a(*a), files_b(*b);
  TensorReader reader_a(*a, files_a), reader_b(*b, files_b);
  std::map<u64, const Suspect*> whole_b;
  for (Suspect& s : suspects) {
    check_stop(observer);
    s.of_a = hashes_of(*a, reader_a, s.a), s.of_b = hashes_of(*b, reader_b, s.b);
    whole_b.emplace(s.of_b.all, &s);
  }
  for (const Suspect& s : suspects) {
    auto found = whole_b.find(s.of_a.all);
    bool same_shape = found != whole_b.end() && std::ranges::equal(a->dims(s.a), b->dims(found->second->b));
    s.row->hint = same_shape ? cat("the same values as ", escaped(found->second->row->name), " of B")
                             : order_text(s.of_a, s.of_b);
  }
  if (std::ranges::all_of(suspects, [](const Suspect& s) { return !s.row->hint.empty(); })) return;
  Siblings siblings(*a, *b);
  for (const Suspect& s : suspects) {
    check_stop(observer);
    if (s.row->hint.empty()) s.row->hint = siblings.hint(s.a, s.b);
  }
}

}  // namespace mckpt::impl
