// Two readers side by side: a block of one is kept while the other passes the same items.
#include "convert/compare/differences/read_values.h"

#include <algorithm>
#include <cstring>

#include "convert/compare/differences/comparison.h"
#include "convert/keys/stored_chunks.h"
#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/base/observer.h"
#include "core/base/text.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "io/copy/observed_sink.h"
#include "io/store/finding.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/values/tensor_reader.h"

namespace mckpt::impl {
namespace {

constexpr i64 kBlockBytes = 8 << 20;

// Formats whose tensors may be in another order.
bool may_reorder(const Store& store) {
  FormatFamily family = format_family(store.format());
  return family != FormatFamily::kSafetensors && family != FormatFamily::kDcp;
}

// Whether the items of all chunks are bytes of their files, row by row. A chunk that cannot be found is left to the
// comparison of bytes, which reports it.
bool is_plain(const Store& store, i64 tensor) {
  try {
    for (i64 c = 0; c < store.chunk_count(tensor); c++)
      check_plain(store, tensor, store.chunk(tensor, c), store.resolve(tensor, c));
    return true;
  } catch (const Error& e) {
    return e.code() != Code::kUnsupportedTensor;
  }
}

class ReadSides {
 public:
  ReadSides(const Store& tested, const Store& source, Observer& observer)
      : tested_(tested),
        tested_files_(tested),
        source_files_(source),
        tested_reader_(tested, tested_files_),
        source_reader_(source, source_files_),
        observer_(observer) {}

  // The first byte that differs, in the row-major form of the tensor; -1: none.
  i64 first_difference(i64 t, i64 s) {
    i64 items = tested_.shape(t).items(), item_bytes = dtype_info(tested_.dtype(t)).bits / 8;
    i64 step = std::max(i64{1}, kBlockBytes / item_bytes), found = -1;
    for (i64 begin = 0; begin < items && found < 0; begin += step) {
      i64 end = std::min(items, begin + step), first = begin * item_bytes;
      block_.resize((end - begin) * item_bytes);
      tested_reader_.read(t, begin, end, [&](std::span<const u8> bytes, i64 at) {
        check_stop(observer_);
        std::memcpy(&block_[at - first], bytes.data(), bytes.size());
        observer_.done(std::ssize(bytes));
      });
      source_reader_.read(s, begin, end, [&](std::span<const u8> bytes, i64 at) {
        const u8* own = &block_[at - first];
        if (found < 0 && std::memcmp(own, bytes.data(), bytes.size()) != 0)
          found = at + (std::mismatch(bytes.begin(), bytes.end(), own).first - bytes.begin());
      });
    }
    return found;
  }

 private:
  const Store& tested_;
  StoreFiles tested_files_, source_files_;
  TensorReader tested_reader_, source_reader_;
  Observer& observer_;
  std::vector<u8> block_;
};

// The tensors to compare: numbers in the tested store and in the source.
std::vector<std::pair<i64, i64>> reordered(const Store& tested, const Store& source,
                                           const std::set<i64>& except) {
  std::vector<std::pair<i64, i64>> out;
  if (!may_reorder(tested) && !may_reorder(source)) return out;
  NameMap<std::string_view, i64> by_name;
  for (i64 s = 0; s < source.tensor_count(); s++) by_name.emplace(source.name(s), s);
  for (i64 t = 0; t < tested.tensor_count(); t++) {
    auto at = by_name.find(tested.name(t));
    if (at == by_name.end() || except.contains(t) || dtype_info(tested.dtype(t)).bits < 8) continue;
    i64 s = at->second;
    bool alike = tested.dtype(t) == source.dtype(s) && std::ranges::equal(tested.dims(t), source.dims(s));
    if (alike && (!is_plain(tested, t) || !is_plain(source, s))) out.emplace_back(t, s);
  }
  return out;
}

}  // namespace

std::set<i64> compare_read_values(const Store& tested, const Store& source, const std::set<i64>& except,
                                  Comparison& comparison, Observer& observer) {
  const std::vector<std::pair<i64, i64>> pairs = reordered(tested, source, except);
  std::set<i64> out;
  if (pairs.empty()) return out;
  i64 bytes = 0;
  for (auto [t, s] : pairs) bytes += TensorReader::tensor_bytes(tested, t);
  ReadSides sides(tested, source, observer);
  observer.begin("compare", bytes);
  for (auto [t, s] : pairs) {
    out.insert(t);
    std::string name(tested.name(t));
    comparison.note_compared(name);
    try {
      i64 at = sides.first_difference(t, s);
      if (at < 0) continue;
      i64 item = at / (dtype_info(tested.dtype(t)).bits / 8);
      comparison.differs({.code = Code::kUnequal,
                          .tensor = name,
                          .message = cat("the tensor differs from ",
                                         dims_to_string(item_index(item, tested.dims(t))), " on")});
    } catch (const Error& e) {
      if (e.code() == Code::kInterrupted) throw;
      Finding finding = to_finding(e);
      finding.tensor = name;
      comparison.leave_out(std::move(finding), {UnlikeTensor::Kind::kValues, name});
    }
  }
  observer.end();
  return out;
}

}  // namespace mckpt::impl
