// Computes statistics with all threads. Tensors are cut into units of 16 Mi items, whatever the number of
// threads (a tensor of elements smaller than a byte is one unit); each unit is summed by one thread, and the
// sums of a tensor are merged in the order of its units. So the order of floating-point additions, and with
// it every bit of the result, does not depend on the threads.
//
//   pass 1   each unit: codes counted, or numbers summed; NaN and infinities    -> min, max, mean, deviation
//   pass 2   each unit of tensors of more than 16 bits, if a histogram is wanted -> counts in bins
#include "io/values/tensor_stats.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "core/items/shape.h"
#include "io/file/parallel.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/values/tensor_reader.h"
#include "io/values/value_sums.h"

namespace mckpt::impl {
namespace {

using Kind = ElementForm::Kind;

constexpr i64 kUnitItems = 16 << 20;
// Above this size, the chunks of a tensor are resolved before memory is allocated for its units: a file may
// declare any size.
constexpr i64 kLargeItems = i64{1} << 32;

// A part of one of the tensors; `place` is the tensor's place in the list that was asked for.
struct Unit {
  std::size_t place;
  i64 begin, end;
};

// The facts of a tensor while its units are being read.
struct Open {
  CodeCounts codes;
  std::vector<ValueSums> sums;  // by unit
  std::vector<NonFinite> non_finite;
  i64 left = 0;
  std::optional<Bins> bins;
};

// All statistics from the counts of codes: first the sum and the extremes, then with the mean known the
// squared deviations and the bins.
void set_codes(TensorStats& s, const CodeCounts& codes, const std::vector<double>& values, int bin_count) {
  double sum = 0, squares = 0;
  for (const CodeCount& c : codes) {
    double v = values[c.code];
    if (!std::isfinite(v)) continue;
    s.min = s.finite == 0 ? v : std::min<long double>(s.min, v);
    s.max = s.finite == 0 ? v : std::max<long double>(s.max, v);
    s.finite += c.count;
    if (v == 0) s.zeros += c.count;
    sum += v * static_cast<double>(c.count);
    s.sum_of_squares +=
        static_cast<long double>(v) * static_cast<long double>(v) * static_cast<long double>(c.count);
  }
  if (s.finite == 0) return;
  s.mean = sum / static_cast<double>(s.finite);
  Bins bins(s.min, s.max, std::max(1, bin_count));
  for (const CodeCount& c : codes) {
    double v = values[c.code];
    if (!std::isfinite(v)) continue;
    squares += (v - s.mean) * (v - s.mean) * static_cast<double>(c.count);
    bins.add(v, c.count);
  }
  s.deviation = std::sqrt(squares / static_cast<double>(s.finite));
  if (bin_count > 0) s.histogram = std::move(bins.counts);
}

// All statistics but the histogram.
void set_sums(TensorStats& s, const ValueSums& all) {
  s.finite = all.count;
  s.zeros = all.zeros;
  if (all.count == 0) return;
  s.min = all.min;
  s.max = all.max;
  s.sum_of_squares = all.sum_of_squares;
  s.mean = static_cast<double>(all.mean());
  s.deviation = static_cast<double>(std::sqrt(all.squared_deviations / static_cast<long double>(all.count)));
}

// Lists units of some tensors, reads them in all threads, and finishes a tensor with its last unit.
class StatsRun {
 public:
  StatsRun(const Store& store, int bins, int threads, const std::function<void(i64)>& progress)
      : store_(store),
        files_(store),
        bins_(bins),
        threads_(threads),
        progress_(progress),
        counters_(static_cast<std::size_t>(threads)) {
    for (int i = 0; i < threads; i++) readers_.push_back(std::make_unique<TensorReader>(store, files_));
  }

  std::vector<TensorStats> run(std::span<const i64> tensors) {
    tensors_ = tensors;
    open_.clear(), open_.resize(tensors.size());
    stats_.assign(tensors.size(), {});
    list_units([](std::size_t) { return true; });
    each_unit([&](int worker, const Unit& unit) { sum_unit(worker, unit); });
    for (std::size_t p = 0; p < stats_.size(); p++)
      if (store_.shape(tensors_[p]).items() == 0) finish(p);
    // Numbers of more than 16 bits are binned in a second pass, now that the extremes are known.
    list_units([&](std::size_t p) { return open_[p] && open_[p]->bins; });
    each_unit([&](int worker, const Unit& unit) { bin_unit(worker, unit); });
    for (std::size_t p = 0; p < stats_.size(); p++)
      if (open_[p] && open_[p]->bins) stats_[p].histogram = std::move(open_[p]->bins->counts);
    return std::move(stats_);
  }

 private:
  ElementForm form(std::size_t place) const { return element_form(store_.dtype(tensors_[place])); }

  template <typename Wanted>
  void list_units(Wanted&& wanted) {
    units_.clear();
    for (std::size_t p = 0; p < tensors_.size(); p++) {
      if (!wanted(p)) continue;
      i64 items = store_.shape(tensors_[p]).items();
      // Nothing is allocated for a size that is only declared.
      for (i64 c = 0; items > kLargeItems && c < store_.chunk_count(tensors_[p]); c++)
        static_cast<void>(store_.resolve(tensors_[p], c));
      i64 step = dtype_info(store_.dtype(tensors_[p])).bits < 8 ? items : kUnitItems;
      i64 count = items == 0 ? 0 : ceil_div(items, step);
      if (!open_[p]) open_[p] = std::make_unique<Open>();
      open_[p]->left = count;
      open_[p]->sums.resize(static_cast<std::size_t>(count));
      open_[p]->non_finite.resize(static_cast<std::size_t>(count));
      for (i64 begin = 0; begin < items; begin += step)
        units_.push_back({p, begin, std::min(items, begin + step)});
    }
  }

  template <typename Work>
  void each_unit(Work&& work) {
    parallel_for(static_cast<i64>(units_.size()), threads_,
                 [&](int worker, i64 u) { work(worker, units_[u]); });
  }

  template <typename Take>
  void read(int worker, const Unit& unit, Take&& take) {
    readers_[worker]->read(tensors_[unit.place], unit.begin, unit.end,
                           [&](std::span<const u8> bytes, i64 at) {
                             take(bytes, at);
                             progress_(static_cast<i64>(bytes.size()));
                           });
  }

  const std::vector<double>& values_of(DType dtype) {
    std::vector<double>& values = values_[dtype];
    if (values.empty()) values = code_values(dtype);
    return values;
  }

  void sum_unit(int worker, const Unit& unit);
  void bin_unit(int worker, const Unit& unit);
  void finish(std::size_t place);

  const Store& store_;
  StoreFiles files_;
  std::span<const i64> tensors_;
  int bins_, threads_;
  const std::function<void(i64)>& progress_;
  std::vector<std::unique_ptr<Open>> open_;
  std::vector<TensorStats> stats_;
  std::vector<CodeCounter> counters_;
  std::vector<std::unique_ptr<TensorReader>> readers_;
  std::vector<Unit> units_;
  std::map<DType, std::vector<double>> values_;  // of the codes of a type
  std::mutex mutex_;
};

void StatsRun::sum_unit(int worker, const Unit& unit) {
  ElementForm f = form(unit.place);
  DType dtype = store_.dtype(tensors_[unit.place]);
  CodeCounter& counter = counters_[worker];
  ValueSums sums;
  CodeCounts codes;
  NonFinite non_finite;
  read(worker, unit, [&](std::span<const u8> bytes, i64 at) {
    scan_non_finite(dtype, bytes, at * 8 / f.number_bits, non_finite);
    f.kind == Kind::kCode ? counter.add(f.number_bits, bytes) : sums.merge(sum_numbers(f.kind, bytes));
    if (counter.nearly_full()) codes = merged(codes, counter.take());
  });
  codes = merged(codes, counter.take());
  std::lock_guard lock(mutex_);
  Open& open = *open_[unit.place];
  std::size_t index = static_cast<std::size_t>(unit.begin / kUnitItems);
  open.sums[index] = sums;
  open.non_finite[index] = non_finite;
  open.codes = merged(open.codes, codes);
  if (--open.left == 0) finish(unit.place);
}

void StatsRun::finish(std::size_t place) {
  Open& open = *open_[place];
  TensorStats& s = stats_[place];
  s.numbers = store_.shape(tensors_[place]).items() * form(place).per_element;
  for (const NonFinite& n : open.non_finite) s.non_finite.merge(n);
  if (form(place).kind == Kind::kCode) {
    set_codes(s, open.codes, values_of(store_.dtype(tensors_[place])), bins_);
  } else {
    ValueSums all;
    for (const ValueSums& sums : open.sums) all.merge(sums);
    set_sums(s, all);
    if (bins_ > 0 && all.count > 0) open.bins.emplace(s.min, s.max, bins_);
    if (bins_ > 0 && all.count == 0) progress_(TensorReader::tensor_bytes(store_, tensors_[place]));
  }
  if (!open.bins) open_[place].reset();
}

void StatsRun::bin_unit(int worker, const Unit& unit) {
  const TensorStats& s = stats_[unit.place];
  Bins mine(s.min, s.max, bins_);
  read(worker, unit, [&](std::span<const u8> bytes, i64) { mine.add_numbers(form(unit.place).kind, bytes); });
  std::lock_guard lock(mutex_);
  std::vector<i64>& counts = open_[unit.place]->bins->counts;
  for (std::size_t b = 0; b < counts.size(); b++) counts[b] += mine.counts[b];
}

}  // namespace

double l2_norm(const TensorStats& stats) { return l2_norm(stats.sum_of_squares); }

double l2_norm(long double sum_of_squares) { return static_cast<double>(std::sqrt(sum_of_squares)); }

i64 stats_bytes(const Store& store, std::span<const i64> tensors, int bins) {
  i64 total = 0;
  for (i64 t : tensors) {
    const bool twice = bins > 0 && element_form(store.dtype(t)).kind != Kind::kCode;
    total += TensorReader::tensor_bytes(store, t) * (twice ? 2 : 1);
  }
  return total;
}

std::vector<TensorStats> tensor_stats(const Store& store, std::span<const i64> tensors, int bins, int threads,
                                      const std::function<void(i64 bytes)>& progress) {
  return StatsRun(store, bins, threads, progress).run(tensors);
}

void each_tensor_stats(const Store& store, std::span<const i64> tensors, int bins, int threads,
                       const std::function<void(i64 bytes)>& progress,
                       const std::function<void(const TensorStats&)>& take) {
  constexpr std::size_t kAtOnce =
      1 << 14;  // more than real models have; threads wait for each other between two lots
  StatsRun run(store, bins, threads, progress);
  for (; !tensors.empty(); tensors = tensors.subspan(std::min(kAtOnce, tensors.size())))
    for (const TensorStats& s : run.run(tensors.first(std::min(kAtOnce, tensors.size())))) take(s);
}

TensorStats stats_of(DType dtype, std::span<const u8> bytes) {
  constexpr std::size_t kStretch = 3 << 20;  // whole numbers, of 6 bits too
  const ElementForm form = element_form(dtype);
  TensorStats s;
  s.numbers = std::ssize(bytes) * 8 / form.number_bits;
  scan_non_finite(dtype, bytes, 0, s.non_finite);
  if (form.kind != Kind::kCode) {
    set_sums(s, sum_numbers(form.kind, bytes));
    return s;
  }
  CodeCounter counter;
  CodeCounts codes;
  while (!bytes.empty()) {
    std::span<const u8> some = bytes.first(std::min(kStretch, bytes.size()));
    counter.add(form.number_bits, some);
    if (counter.nearly_full()) codes = merged(codes, counter.take());
    bytes = bytes.subspan(some.size());
  }
  set_codes(s, merged(codes, counter.take()), code_values(dtype), 0);
  return s;
}

}  // namespace mckpt::impl
