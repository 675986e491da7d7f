// Statistics of tensors as a table with a small histogram, or as JSON.
#pragma once

#include <span>

#include "core/base/int.h"

namespace mckpt::impl {

class JsonWriter;
class Output;
class Store;
struct TensorStats;

// stats[i] is of tensors[i].
void write_stats(Output& out, const Store& store, std::span<const i64> tensors,
                 std::span<const TensorStats> stats);
// One object.
void write_stats(JsonWriter& json, const Store& store, i64 tensor, const TensorStats& stats);

}  // namespace mckpt::impl
