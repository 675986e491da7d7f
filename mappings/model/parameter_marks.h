// The marks that Megatron puts on a parameter, by which training code knows how it lies over the ranks. They
// belong to the parameter, not to its memory: gathering and releasing weights leaves them as they are.
#pragma once

#include "mappings/model/expand.h"

namespace mckpt {

struct ParameterMarks {
  bool tensor_model_parallel = false;
  int partition_dim = -1;
  i64 partition_stride = 1;  // parts, each split over the ranks by itself, that alternate rank by rank
  bool sequence_parallel = false;
  bool embedding_or_output = false;
  bool allreduce = true;  // false: its gradients are summed over the expert mesh
  Shape logical;          // of the whole

  friend bool operator==(const ParameterMarks&, const ParameterMarks&) = default;
};

ParameterMarks marks_of(const ModelParameter& parameter, const Grid& grid);

// Whether the layer's fused path takes the parameter from its module without calling it: it is gathered and
// released with the layer, whatever unit the module is.
bool read_by_layer(const ModelParameter& parameter);

}  // namespace mckpt
