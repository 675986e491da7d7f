// LayerValues: what the values of every kind of tensor are like, layer by layer. All experts of a layer are
// one cell.
//
//   kind                          layer 0                layer 1
//   self_attn.q_proj.weight       std 0.021, no NaN      std 0.019
//   mlp.experts.*.up_proj.weight  of 256 tensors         std 0.020, 3 NaN
//
// Sums of several tensors are exact in their numbers, extremes, mean, deviation and norm; their histogram is
// put together from the histograms of the tensors, whose bins are spread over the common range.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "page/data/tensor_place.h"

namespace mckpt::impl {

class Store;
struct TensorStats;

struct ValueCell {
  i64 layer = -1;
  i64 tensors = 0;
  i64 numbers = 0, finite = 0, zeros = 0, nans = 0, infinities = 0;
  double min = 0, max = 0, mean = 0, deviation = 0, l2 = 0;  // of finite numbers; 0 where there are none
  std::vector<double> histogram{};                           // from min to max
};

struct ValueKind {
  std::string section;  // "" where there is no layer
  std::string kind;     // TensorPlace::kind()
  std::string dtype;
  ModulePart part = ModulePart::kOther;
  std::vector<ValueCell> cells{};  // by layer, ascending
};

struct LayerValues {
  std::vector<ValueKind> kinds{};
  i64 kinds_left_out = 0;  // those beyond the limit
};

// `stats`: in the order of `tensors`.
LayerValues layer_values(const Store& store, std::span<const i64> tensors, std::span<const TensorStats> stats,
                         i64 most_cells = 6000);

}  // namespace mckpt::impl
