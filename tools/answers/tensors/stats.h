// Statistics of tensors as a table with a small histogram, or as JSON: the answers of `mckpt stats`.
//
//   {"name": "model.norm.weight", "dtype": "bfloat16", "shape": [16], "count": 16, "finite": 16,
//    "min": 0.80859375, "max": 1.1796875, "mean": 0.990966796875, "std": 0.08119832376243881,
//    "l2": 3.9771514636292693, "zeros": 0,
//    "nan": 0, "inf": 0, "first_nan": null, "first_inf": null, "histogram": [1, 10, 3, 2]}
#pragma once

#include <optional>
#include <span>

#include "core/base/int.h"

namespace mckpt::impl {

class JsonWriter;
class Output;
class StatsList;
class Store;
struct TensorStats;

// The L2 norm of the model's parameters together. States of optimizers, other tensors and packed values are
// not among them. A parameter of which several ranks have a tensor each counts once.
struct GlobalNorm {
  std::optional<double> l2{};   // nothing: ranks may have copies, and which tensors these are is not known
  i64 tensors = 0, others = 0;  // those counted, and those left out
  i64 copies = 0;               // of other ranks, or unused by the run, and left out too
};
// stats[i] is of tensors[i], here and below.
GlobalNorm global_norm(const Store& store, std::span<const i64> tensors, const StatsList& stats);

void write_stats(Output& out, const Store& store, std::span<const i64> tensors, const StatsList& stats);
// One object.
void write_stats(JsonWriter& json, const Store& store, i64 tensor, const TensorStats& stats);

}  // namespace mckpt::impl
