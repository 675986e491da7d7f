// Two readers side by side: a block of one is kept while the other passes the same items.
#include "convert/compare/differences/read_values.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

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
#include "io/copy/observed_sink.h"
#include "io/file/parallel.h"
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
  const bool computed = dequantized_view(store) || adapted_view(store);
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

// Whether the items of both sides can be compared: as they are, cast to the tested side's type, or, for a
// list of differences, in a type that has all values of both.
bool is_alike(const Store& tested, i64 t, const Store& source, i64 s, bool all) {
  const DType from = source.dtype(s), to = tested.dtype(t);
  return (from == to || (is_castable(from) && is_castable(to)) || (all && common_type(to, from))) &&
         std::ranges::equal(tested.dims(t), source.dims(s));
}

// Whether no conversion casts one of the types to the other, so that only values that are read can be
// compared.
bool are_foreign(DType a, DType b) { return a != b && !(is_castable(a) && is_castable(b)); }

class ReadSides {
 public:
  ReadSides(const Store& tested, const Store& source, Observer& observer)
      : tested_(tested), tested_reader_(tested), source_reader_(source), observer_(observer) {}

  // The first item that differs, in the row-major form of the tensor; -1: none. Items are compared in the
  // type of the meter. `counts`: gets the distance of all items; null: reading ends at the first difference.
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
        if (!holds_values_of(to, from) || !holds_values_of(to, own_type))
          adopt_nans(to, bytes, {own, bytes.size()});
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
    at = at / item * item_to;
    if (!is_castable(from) || !is_castable(to)) {
      cast_.clear();
      append_widened(from, to, bytes, cast_);
      return cast_;
    }
    cast_.resize(static_cast<std::size_t>(some * item_to));
    cast_items({from, to, to}, bytes.data(), cast_.data(), some);
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

using Pair = std::pair<i64, i64>;  // numbers in the tested store and in the source

// The tensors to compare.
std::vector<Pair> reordered(const Store& tested, const Store& source, const std::set<i64>& except,
                            bool computed, Comparison& comparison) {
  std::vector<Pair> out;
  const bool all = comparison.counting().all, may = computed || may_reorder(tested) || may_reorder(source);
  if (!may && !all) return out;
  NameMap<std::string_view, i64> by_name;
  for (i64 s = 0; s < source.tensor_count(); s++) by_name.emplace(source.name(s), s);
  for (i64 t = 0; t < tested.tensor_count(); t++) {
    auto at = by_name.find(tested.name(t));
    if (at == by_name.end() || except.contains(t)) continue;
    const i64 s = at->second;
    if (dtype_info(tested.dtype(t)).bits < 8 || dtype_info(source.dtype(s)).bits < 8) continue;
    if (!is_alike(tested, t, source, s, all)) continue;
    if ((are_foreign(tested.dtype(t), source.dtype(s)) ||
         (may && (!is_plain(tested, t) || !is_plain(source, s)))) &&
        comparison.chooses(tested.name(t)))
      out.emplace_back(t, s);
  }
  return out;
}

// Compares tensors in threads, each by one of them, and reports in the order of the list.
class PairComparison {
 public:
  PairComparison(const Store& tested, const Store& source, std::span<const Pair> pairs,
                 Comparison& comparison, Observer& observer)
      : tested_(tested),
        source_(source),
        pairs_(pairs),
        comparison_(comparison),
        observer_(observer),
        sides_(static_cast<std::size_t>(comparison.threads())),
        found_(pairs.size()) {}

  void run() {
    i64 bytes = 0;
    std::vector<i64> all;
    for (std::size_t i = 0; i < pairs_.size(); i++) {
      bytes += TensorReader::tensor_bytes(tested_, pairs_[i].first);
      all.push_back(static_cast<i64>(i));
    }
    observer_.begin("compare", bytes);
    look(all, comparison_.counting().all);
    if (!comparison_.counting().all) count_first();
    observer_.end();
    for (std::size_t i = 0; i < pairs_.size(); i++) report(i);
  }

 private:
  // The counts of one pair. Without a difference `at` is -1.
  struct Found {
    i64 at = -1;
    std::optional<Difference> counts{};
    std::optional<Error> error{};
    bool left = false;  // another pair had decided before
  };

  void look(const std::vector<i64>& some, bool counts) {
    std::atomic<bool> decided = comparison_.decided();
    const bool first_decides = comparison_.counting().first_decides;
    parallel_for(std::ssize(some), comparison_.threads(), [&](int worker, i64 n) {
      Found& found = found_[static_cast<std::size_t>(some[static_cast<std::size_t>(n)])];
      found.left = decided;
      if (found.left) return;
      look(worker, pairs_[static_cast<std::size_t>(some[static_cast<std::size_t>(n)])],
           counts && !first_decides, found);
      if (first_decides && (found.at >= 0 || found.error)) decided = true;
    });
  }

  void look(int worker, Pair pair, bool counts, Found& found) {
    const auto [t, s] = pair;
    const std::string name(tested_.name(t));
    const Counting& counting = comparison_.counting();
    try {
      auto& sides = sides_[static_cast<std::size_t>(worker)];
      if (!sides) sides = std::make_unique<ReadSides>(tested_, source_, observer_);
      const DType stored = tested_.dtype(t);
      const DistanceMeter meter(counting.all ? common_type(stored, source_.dtype(s)).value_or(stored)
                                             : stored);
      if (counts) found.counts = Difference{.tensor = name, .items = 0};
      const Tolerance within = counting.within ? counting.within(name) : Tolerance{};
      found.at = sides->first_difference(t, s, meter, within, found.counts ? &*found.counts : nullptr);
    } catch (const Error& e) {
      if (e.code() == Code::kInterrupted) throw;
      found.error = e;
    }
  }

  // Counting takes a second read, of the tensors that findings name.
  void count_first() {
    std::vector<i64> some;
    for (std::size_t i = 0; i < found_.size() && std::ssize(some) < Findings::kMostOfOneCode; i++)
      if (found_[i].at >= 0) some.push_back(static_cast<i64>(i));
    if (!some.empty()) look(some, true);
  }

  void report(std::size_t i) {
    Found& found = found_[i];
    const auto [t, s] = pairs_[i];
    const std::string name(tested_.name(t));
    comparison_.note_compared(name);
    if (found.left) return;
    if (comparison_.counting().all)
      comparison_.note_types(name, stored_form(tested_, t), stored_form(source_, s));
    if (found.error) {
      Finding finding = to_finding(*found.error);
      finding.tensor = name;
      return comparison_.leave_out(std::move(finding), {UnlikeTensor::Kind::kValues, name});
    }
    if (found.at < 0) return;
    if (found.counts && comparison_.counting().turned) std::swap(found.counts->expected, found.counts->found);
    Finding finding{.code = Code::kUnequal,
                    .tensor = name,
                    .message = found.counts
                                   ? difference_text(*found.counts)
                                   : cat("the tensor differs from ",
                                         dims_to_string(item_index(found.at, tested_.dims(t))), " on")};
    comparison_.differs(std::move(finding), std::move(found.counts));
  }

  const Store& tested_;
  const Store& source_;
  std::span<const Pair> pairs_;
  Comparison& comparison_;
  Observer& observer_;
  std::vector<std::unique_ptr<ReadSides>> sides_;  // by thread
  std::vector<Found> found_;                       // by pair
};

// Returns the numbers of the pairs in the tested store.
std::set<i64> compare_pairs(const Store& tested, const Store& source, std::span<const Pair> pairs,
                            Comparison& comparison, Observer& observer) {
  std::set<i64> out;
  if (pairs.empty()) return out;
  PairComparison(tested, source, pairs, comparison, observer).run();
  for (const Pair& pair : pairs) out.insert(pair.first);
  return out;
}

}  // namespace

bool is_compared_by_values(DType a, DType b) {
  return dtype_info(a).bits >= 8 && dtype_info(b).bits >= 8 && common_type(a, b).has_value();
}

std::set<i64> compare_read_values(const Store& tested, const Store& source, const std::set<i64>& except,
                                  bool computed, Comparison& comparison, Observer& observer) {
  const std::vector<Pair> pairs = reordered(tested, source, except, computed, comparison);
  return compare_pairs(tested, source, pairs, comparison, observer);
}

bool compare_read_values(const Store& tested, const Store& source, i64 tested_tensor, i64 source_tensor,
                         Comparison& comparison, Observer& observer) {
  if (!is_alike(tested, tested_tensor, source, source_tensor, comparison.counting().all) ||
      dtype_info(tested.dtype(tested_tensor)).bits < 8)
    return false;
  const std::pair pair{tested_tensor, source_tensor};
  compare_pairs(tested, source, {&pair, 1}, comparison, observer);
  return true;
}

}  // namespace mckpt::impl
