// The attributes that Megatron sets on a parameter: how it is split over the ranks. They belong
// to the parameter, not to its memory: gathering and releasing weights does not change them.
#pragma once

#include "core/base/int.h"
#include "core/items/shape.h"

namespace mckpt::impl {

struct Grid;
struct ModelParameter;

// The defaults are the marks of a parameter that every rank holds whole.
struct ParameterMarks {
  bool tensor_model_parallel = false;
  int partition_dim = -1;
  i64 partition_stride = 1;  // number of parts; each is split over the ranks separately
  bool sequence_parallel = false;
  bool embedding_or_output = false;
  bool allreduce = true;  // false: gradients are summed over the expert mesh
  Shape logical;          // of the whole parameter

  friend bool operator==(const ParameterMarks&, const ParameterMarks&) = default;
};

// True for a norm over all heads whose items are split over the ranks. Megatron does not mark it.
bool is_split_norm(const ModelParameter& parameter);
// Whether Megatron's optimizers let the parameter decay: all but vectors and biases.
bool decays(const ModelParameter& parameter);

ParameterMarks marks_of(const ModelParameter& parameter, const Grid& grid);

}  // namespace mckpt::impl
