// Adds the statistics of the tensors of a cell, with their histograms on a common range.
#include "page/data/layer_values.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "core/items/dtype.h"
#include "io/store/store.h"
#include "io/values/tensor_stats.h"

namespace mckpt::impl {
namespace {

// Adds counts of bins between two numbers to bins between two others, which contain them: a bin that is over
// several others is divided among them by width.
void spread(const std::vector<i64>& counts, double low, double high, std::vector<double>& to, double to_low,
            double to_high) {
  const double to_width = (to_high - to_low) / static_cast<double>(to.size());
  const double width = (high - low) / static_cast<double>(counts.size());
  for (std::size_t i = 0; i < counts.size(); i++) {
    if (counts[i] == 0) continue;
    const double begin = low + static_cast<double>(i) * width, end = begin + width;
    auto bin = [&](double x) {
      const double at = to_width > 0 ? (x - to_low) / to_width : 0;
      return std::clamp<i64>(static_cast<i64>(at), 0, std::ssize(to) - 1);
    };
    const i64 first = bin(begin), last = bin(end);
    if (first == last || !(width > 0)) {
      to[first] += static_cast<double>(counts[i]);
      continue;
    }
    for (i64 b = first; b <= last; b++) {
      const double from = std::max(begin, to_low + static_cast<double>(b) * to_width);
      const double until = b == last ? end : std::min(end, to_low + static_cast<double>(b + 1) * to_width);
      to[b] += static_cast<double>(counts[i]) * std::max(0.0, until - from) / width;
    }
  }
}

ValueCell cell_of(i64 layer, const std::vector<const TensorStats*>& all) {
  ValueCell cell{.layer = layer, .tensors = std::ssize(all)};
  long double sum = 0, squares = 0, low = 0, high = 0;
  std::size_t bins = 0;
  for (const TensorStats* s : all) {
    cell.numbers += s->numbers, cell.zeros += s->zeros;
    cell.nans += s->non_finite.nans, cell.infinities += s->non_finite.infinities;
    if (s->finite == 0) continue;
    low = cell.finite == 0 ? s->min : std::min(low, s->min);
    high = cell.finite == 0 ? s->max : std::max(high, s->max);
    cell.finite += s->finite;
    sum += static_cast<long double>(s->mean) * static_cast<long double>(s->finite);
    squares += s->sum_of_squares;
    bins = std::max(bins, s->histogram.size());
  }
  if (cell.finite == 0) return cell;
  const long double mean = sum / static_cast<long double>(cell.finite);
  // The deviations of a tensor from the mean of all: its own, and its mean's.
  long double deviations = 0;
  for (const TensorStats* s : all) {
    const long double apart = s->mean - mean, own = s->deviation;
    deviations += static_cast<long double>(s->finite) * (own * own + apart * apart);
  }
  cell.min = static_cast<double>(low), cell.max = static_cast<double>(high),
  cell.mean = static_cast<double>(mean);
  cell.deviation = static_cast<double>(std::sqrt(deviations / static_cast<long double>(cell.finite)));
  cell.l2 = l2_norm(squares);
  cell.histogram.resize(bins);
  for (const TensorStats* s : all)
    if (!s->histogram.empty())
      spread(s->histogram, static_cast<double>(s->min), static_cast<double>(s->max), cell.histogram, cell.min,
             cell.max);
  return cell;
}

}  // namespace

LayerValues layer_values(const Store& store, std::span<const i64> tensors, std::span<const TensorStats> stats,
                         i64 most_cells) {
  using Key = std::tuple<std::string, std::string, std::string>;  // section, kind, type
  std::map<Key, std::size_t> numbers;
  std::vector<std::map<i64, std::vector<const TensorStats*>>> cells;  // by kind and layer
  LayerValues out;
  for (std::size_t i = 0; i < tensors.size(); i++) {
    const TensorPlace place = tensor_place(store.name(tensors[i]));
    const std::string type(dtype_name(store.dtype(tensors[i])));
    auto [known, fresh] = numbers.try_emplace({place.section, place.kind(), type}, out.kinds.size());
    if (fresh) {
      out.kinds.push_back({place.section, place.kind(), type, module_part(store.name(tensors[i]))});
      cells.emplace_back();
    }
    cells[known->second][place.layer].push_back(&stats[i]);
  }
  i64 count = 0;
  for (std::size_t k = 0; k < out.kinds.size(); k++) {
    count += std::ssize(cells[k]);
    if (count > most_cells) {
      out.kinds_left_out = std::ssize(out.kinds) - static_cast<i64>(k);
      out.kinds.resize(k);
      break;
    }
    for (const auto& [layer, all] : cells[k]) out.kinds[k].cells.push_back(cell_of(layer, all));
  }
  return out;
}

}  // namespace mckpt::impl
