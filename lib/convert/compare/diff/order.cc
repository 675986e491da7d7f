// Each tensor is reduced to hashes: one for all of it, one for each row and one for each column. Equal lists
// of hashes, sorted, mean the same rows in another order; equal rows on one side and columns on the other,
// the transpose.
#include "convert/compare/diff/order.h"

#include <algorithm>
#include <map>
#include <optional>

#include "convert/compare/diff/could_read.h"
#include "convert/compare/diff/diff.h"
#include "convert/compare/diff/siblings.h"
#include "core/base/error.h"
#include "core/base/observer.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "hf/quantized/dequantized_store.h"
#include "io/copy/observed_sink.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/store/tensor_numbers.h"
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

// `beyond`: how many are left out because there are too many.
std::vector<Suspect> suspects_in(const Store& a, const Store& b, std::vector<DiffRow>& rows, i64& beyond) {
  std::vector<Suspect> out;
  TensorNumbers in_a(a), in_b(b);
  for (DiffRow& row : rows) {
    if (!is_suspect(row)) continue;
    i64 of_a = in_a.find(row.name), of_b = in_b.find(row.name);
    if (of_a < 0 || of_b < 0 || a.dtype(of_a) != b.dtype(of_b)) continue;
    if (!std::ranges::equal(a.dims(of_a), b.dims(of_b))) continue;
    if (TensorReader::tensor_bytes(a, of_a) > kMostBytes) continue;
    out.size() < kMostTensors ? out.push_back({&row, of_a, of_b}) : void(beyond++);
  }
  return out;
}

u64 hash_of(TensorReader& reader, i64 tensor, i64 items) {
  u64 hash = kSeed;
  reader.read(tensor, 0, items, [&](std::span<const u8> bytes, i64) { hash = mixed(hash, bytes); });
  return hash;
}

// Tensors that one side alone has, and whose values the other side has under another name that is not on this
// side.
class Renamed {
 public:
  Renamed(const Store& a, const Store& b) : a_(a), b_(b), files_a_(a), files_b_(b) {}

  void add_hints(std::vector<DiffRow>& rows, Observer& observer) {
    Theirs theirs;
    const bool any =
        std::ranges::any_of(rows, [](const DiffRow& r) { return r.kind == DiffRow::Kind::kOnlyA; });
    std::size_t looked = 0;
    for (DiffRow& row : rows) {
      if (row.kind != DiffRow::Kind::kOnlyB || !any || looked++ >= kMostTensors) continue;
      check_stop(observer);
      if (const i64 t = in_b_.find(row.name); is_read(b_, t))
        could_read([&] { theirs[{row.b, first(b_, reader_b_, t)}].push_back({&row, t}); });
    }
    looked = 0;
    for (DiffRow& row : rows) {
      if (row.kind != DiffRow::Kind::kOnlyA || theirs.empty() || looked++ >= kMostTensors) continue;
      check_stop(observer);
      if (const i64 t = in_a_.find(row.name); is_read(a_, t)) could_read([&] { match(row, t, theirs); });
    }
  }

 private:
  static constexpr i64 kFirstItems = 512;

  struct OfB {
    DiffRow* row;  // null: it is the like of another one
    i64 tensor;
    std::optional<u64> whole{};  // hash, taken once
  };
  using Theirs = std::map<std::pair<std::string, u64>, std::vector<OfB>>;  // by type, shape and first items

  static bool is_read(const Store& store, i64 tensor) {
    return tensor >= 0 && store.shape(tensor).items() > 1 && dtype_info(store.dtype(tensor)).bits % 8 == 0 &&
           TensorReader::tensor_bytes(store, tensor) <= kMostBytes;
  }
  static u64 first(const Store& store, TensorReader& reader, i64 tensor) {
    return hash_of(reader, tensor, std::min(store.shape(tensor).items(), kFirstItems));
  }

  void match(DiffRow& row, i64 t, Theirs& theirs) {
    auto at = theirs.find({row.a, first(a_, reader_a_, t)});
    if (at == theirs.end()) return;
    const i64 items = a_.shape(t).items();
    const u64 whole = hash_of(reader_a_, t, items);
    for (OfB& other : at->second) {
      if (!other.row) continue;
      if (!other.whole) other.whole = hash_of(reader_b_, other.tensor, items);
      if (*other.whole != whole) continue;
      row.hint = cat("the same values as ", escaped(other.row->name), " of B");
      other.row->hint = cat("the same values as ", escaped(row.name), " of A");
      other.row = nullptr;  // each of them once
      return;
    }
  }

  const Store &a_, &b_;
  TensorNumbers in_a_{a_}, in_b_{b_};
  StoreFiles files_a_, files_b_;
  TensorReader reader_a_{a_, files_a_}, reader_b_{b_, files_b_};
};

void add_suspects(const Store& a, const Store& b, std::vector<Suspect> all, Observer& observer) {
  StoreFiles files_a(a), files_b(b);
  TensorReader reader_a(a, files_a), reader_b(b, files_b);
  std::vector<Suspect*> suspects;
  std::map<u64, const Suspect*> whole_b;
  for (Suspect& s : all) {
    check_stop(observer);
    if (!could_read([&] { s.of_a = hashes_of(a, reader_a, s.a), s.of_b = hashes_of(b, reader_b, s.b); }))
      continue;
    suspects.push_back(&s);
    whole_b.emplace(s.of_b.all, &s);
  }
  for (const Suspect* s : suspects) {
    auto found = whole_b.find(s->of_a.all);
    bool same_shape = found != whole_b.end() && std::ranges::equal(a.dims(s->a), b.dims(found->second->b));
    s->row->hint = same_shape ? cat("the same values as ", escaped(found->second->row->name), " of B")
                              : order_text(s->of_a, s->of_b);
  }
  if (std::ranges::all_of(suspects, [](const Suspect* s) { return !s->row->hint.empty(); })) return;
  Siblings siblings(a, b);
  for (const Suspect* s : suspects) {
    check_stop(observer);
    if (s->row->hint.empty()) could_read([&] { s->row->hint = siblings.hint(s->a, s->b); });
  }
}

bool has_hints(const std::vector<DiffRow>& rows) {
  auto has = [&](DiffRow::Kind kind) { return std::ranges::find(rows, kind, &DiffRow::kind) != rows.end(); };
  return std::ranges::any_of(rows, is_suspect) || (has(DiffRow::Kind::kOnlyA) && has(DiffRow::Kind::kOnlyB));
}

}  // namespace

i64 add_order_hints(const Store& a, const Store& b, std::vector<DiffRow>& rows, Observer& observer) {
  if (!has_hints(rows)) return 0;
  i64 beyond = 0;
  std::vector<Suspect> suspects = suspects_in(a, b, rows, beyond);
  if (!suspects.empty()) add_suspects(a, b, std::move(suspects), observer);
  Renamed(a, b).add_hints(rows, observer);
  return beyond;
}

i64 add_order_hints(const std::string& path_a, const std::string& path_b, const OpenOptions& files,
                    std::vector<DiffRow>& rows, Observer& observer) {
  if (!has_hints(rows)) return 0;
  std::unique_ptr<Store> a = open_values(path_a, files), b = open_values(path_b, files);
  return add_order_hints(*a, *b, rows, observer);
}

}  // namespace mckpt::impl
