// Two readers side by side: a block of one is kept while the other passes the same items.
#include "convert/compare/differences/read_values.h"

#include <algorithm>
#include <cstring>

#include "convert/compare/differences/common_type.h"
#include "convert/compare/differences/comparison.h"
#include "convert/compare/differences/item_tally.h"
#include "convert/compare/differences/side_reader.h"
#include "convert/keys/stored_chunks.h"
#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/base/observer.h"
#include "core/base/text.h"
#include "core/items/dtype.h"
#include "core/items/item_cast.h"
#include "core/items/shape.h"
#include "hf/adapter/adapted_store.h"
#include "hf/quantized/dequantized_store.h"
#include "hf/quantized/quantized_store.h"
#include "io/copy/observed_sink.h"
#include "io/store/finding.h"
#include "io/store/findings.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/values/distance.h"
#include "io/values/element.h"
#include "io/values/tensor_reader.h"
#include "io/verify/verify.h"

namespace mckpt::impl {
namespace {

constexpr i64 kBlockBytes = 8 << 20;

// Formats whose tensors may be in another order, and views that compute them.
bool may_reorder(const Store& store) {
  FormatFamily family = format_family(store.format());
  bool computed = dequantized_view(store) != nullptr || adapted_view(store) != nullptr ||
                  dynamic_cast<const QuantizedStore*>(&store) != nullptr;
  return computed || (family != FormatFamily::kSafetensors && family != FormatFamily::kDcp);
}

// Whether the items of all chunks are bytes of their files, row by row. A chunk that cannot be found is left
// to the comparison of bytes, which reports it.
bool is_plain(const Store& store, i64 tensor) {
  try {
    for (i64 c = 0; c < store.chunk_count(tensor); c++)
      check_plain(store, tensor, store.chunk(tensor, c), store.resolve(tensor, c));
    return true;
  } catch (const Error& e) {
    return e.code() != Code::kUnsupportedTensor;
  }
}

// Whether the items of the source can be compared with those of the tested side: as they are, or cast to
// their type.
bool is_alike(const Store& tested, i64 t, const Store& source, i64 s) {
  const DType from = source.dtype(s), to = tested.dtype(t);
  return (from == to || (is_castable(from) && is_castable(to))) &&
         std::ranges::equal(tested.dims(t), source.dims(s));
}

class ReadSides {
 public:
  ReadSides(const Store& tested, const Store& source, Observer& observer)
      : tested_(tested),
        tested_reader_(tested),
        source_reader_(source),
        observer_(observer) {}

  // The first item that differs, in the row-major form of the tensor; -1: none. Items are compared in the type of
  // the meter. `counts`: gets the distance of all items; null: reading ends at the first difference.
  i64 first_difference(i64 t, i64 s, const DistanceMeter& by, const Tolerance& within, Difference* counts) {
    const DType to = by.dtype(), own_type = tested_reader_.type(t, to), from = source_reader_.type(s, to);
    i64 items = tested_.shape(t).items(), item_bytes = dtype_info(to).bits / 8;
    i64 step = std::max(i64{1}, kBlockBytes / item_bytes), found = -1;
    if (counts && by.measures()) counts->distance.emplace();
    for (i64 begin = 0; begin < items && (found < 0 || counts); begin += step) {
      i64 end = std::min(items, begin + step), first = begin * item_bytes;
      block_.resize((end - begin) * item_bytes);
      tested_reader_.read(t, own_type, begin, end, [&](std::span<const u8> bytes, i64 at) {
        check_stop(observer_);
        observer_.done(std::ssize(bytes));
        const std::span<const u8> cast = in_type(own_type, to, bytes, at);
        std::memcpy(&block_[at - first], cast.data(), cast.size());
      });
      source_reader_.read(s, from, begin, end, [&](std::span<const u8> bytes, i64 at) {
        bytes = in_type(from, to, bytes, at);
        u8* own = &block_[at - first];
        if (from != own_type) adopt_nans(to, bytes, {own, bytes.size()});
        if (counts) count({own, bytes.size()}, bytes, by, within, *counts);
        if (found < 0 && std::memcmp(own, bytes.data(), bytes.size()) != 0)
          found = note_first(own, bytes, at / item_bytes, to, t, counts);
      });
    }
    if (counts) counts->beyond = counts->distance ? counts->distance->beyond : counts->items;
    return found;
  }

 private:
  static void count(std::span<const u8> own, std::span<const u8> other, const DistanceMeter& by,
                    const Tolerance& within, Difference& counts) {
    StretchCount here = count_differences(by, own, other, within);
    counts.items += here.items;
    if (here.distance) counts.distance->merge(*here.distance);
  }

  // The items in another type, and `at`, where their first byte is in the tensor, in bytes of that type.
  std::span<const u8> in_type(DType from, DType to, std::span<const u8> bytes, i64& at) {
    if (from == to) return bytes;
    const i64 item = dtype_info(from).bits / 8, item_to = dtype_info(to).bits / 8,
              some = std::ssize(bytes) / item;
    cast_.resize(static_cast<std::size_t>(some * item_to));
    cast_items({from, to, to}, bytes.data(), cast_.data(), some);
    at = at / item * item_to;
    return cast_;
  }

  // The first item that differs, of those from item `first` on; also as values in `counts`. pre: one differs.
  i64 note_first(const u8* own, std::span<const u8> other, i64 first, DType type, i64 t,
                 Difference* counts) const {
    const i64 inside = std::mismatch(other.begin(), other.end(), own).first - other.begin(),
              item = inside / (dtype_info(type).bits / 8);
    if (counts) {
      counts->at = dims_to_string(item_index(first + item, tested_.dims(t)));
      counts->found = element_text(type, own, item);
      counts->expected = element_text(type, other.data(), item);
    }
    return first + item;
  }

  const Store& tested_;
  SideReader tested_reader_, source_reader_;
  Observer& observer_;
  std::vector<u8> block_;  // items of the tested side
  std::vector<u8> cast_;   // items in the type in which they are compared
};

// The tensors to compare: numbers in the tested store and in the source.
std::vector<std::pair<i64, i64>> reordered(const Store& tested, const Store& source,
                                           const std::set<i64>& except, Comparison& comparison) {
  std::vector<std::pair<i64, i64>> out;
  if (!may_reorder(tested) && !may_reorder(source)) return out;
  NameMap<std::string_view, i64> by_name;
  for (i64 s = 0; s < source.tensor_count(); s++) by_name.emplace(source.name(s), s);
  for (i64 t = 0; t < tested.tensor_count(); t++) {
    auto at = by_name.find(tested.name(t));
    if (at == by_name.end() || except.contains(t) || dtype_info(tested.dtype(t)).bits < 8) continue;
    i64 s = at->second;
    if (is_alike(tested, t, source, s) && (!is_plain(tested, t) || !is_plain(source, s)) &&
        comparison.chooses(tested.name(t)))
      out.emplace_back(t, s);
  }
  return out;
}

// Compares these tensors, given as numbers in the tested store and in the source. Returns the former.
std::set<i64> compare_pairs(const Store& tested, const Store& source,
                            std::span<const std::pair<i64, i64>> pairs, Comparison& comparison,
                            Observer& observer) {
  std::set<i64> out;
  if (pairs.empty()) return out;
  i64 bytes = 0;
  for (auto [t, s] : pairs) bytes += TensorReader::tensor_bytes(tested, t);
  ReadSides sides(tested, source, observer);
  observer.begin("compare", bytes);
  std::size_t named = 0;
  for (auto [t, s] : pairs) {
    out.insert(t);
    std::string name(tested.name(t));
    comparison.note_compared(name);
    try {
      const Counting& counting = comparison.counting();
      const DType stored = tested.dtype(t);
      const DistanceMeter meter(counting.all ? common_type(stored, source.dtype(s)) : stored);
      if (counting.all) comparison.note_types(name, stored_form(tested, t), stored_form(source, s));
      std::optional<Difference> counts;
      const Tolerance within = counting.within ? counting.within(name) : Tolerance{};
      if (counting.all) counts = Difference{.tensor = name, .items = 0};
      i64 at = sides.first_difference(t, s, meter, within, counts ? &*counts : nullptr);
      if (at < 0) continue;
      // Counting takes a second read, of the tensors that findings name.
      if (!counts && named++ < Findings::kMostOfOneCode) {
        counts = Difference{.tensor = name, .items = 0};
        sides.first_difference(t, s, meter, within, &*counts);
      }
      if (counts && counting.turned) std::swap(counts->expected, counts->found);
      Finding finding{.code = Code::kUnequal,
                      .tensor = name,
                      .message = counts ? difference_text(*counts)
                                        : cat("the tensor differs from ",
                                              dims_to_string(item_index(at, tested.dims(t))), " on")};
      comparison.differs(std::move(finding), std::move(counts));
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

}  // namespace

std::set<i64> compare_read_values(const Store& tested, const Store& source, const std::set<i64>& except,
                                  Comparison& comparison, Observer& observer) {
  return compare_pairs(tested, source, reordered(tested, source, except, comparison), comparison, observer);
}

bool compare_read_values(const Store& tested, const Store& source, i64 tested_tensor, i64 source_tensor,
                         Comparison& comparison, Observer& observer) {
  if (!is_alike(tested, tested_tensor, source, source_tensor) ||
      dtype_info(tested.dtype(tested_tensor)).bits < 8)
    return false;
  const std::pair pair{tested_tensor, source_tensor};
  compare_pairs(tested, source, {&pair, 1}, comparison, observer);
  return true;
}

}  // namespace mckpt::impl
