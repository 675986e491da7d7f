// Statistics of tensors as a table with a small histogram, or as JSON: the answers of `mckpt stats`.
#pragma once

#include <span>

#include "io/values/tensor_stats.h"
#include "tools/render/answer_json.h"

namespace mckpt::impl {

// stats[i] is of tensors[i].
void write_stats(Output& out, const Store& store, std::span<const i64> tensors,
                 std::span<const TensorStats> stats);
// One object.
void write_stats(JsonWriter& json, const Store& store, i64 tensor, const TensorStats& stats);

}  // namespace mckpt::impl
