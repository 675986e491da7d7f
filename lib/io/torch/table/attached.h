// The facts of a tensor that are not in its storage: how its integers become values, and the attributes that
// programs gave it. Each is walked like another entry of the file, under the tensor's name.
//
//   w = torch.nn.Parameter(T); w.mask = M; w.lr = 0.1     w.(attributes).mask, a tensor; w.(attributes).lr
//   q, quantized by tensor                                q.(quantizer), an object
//   c, quantized by channel                               c.(quantizer).scales, .zero_points: tensors; .axis
#pragma once

#include <string>
#include <vector>

#include "io/pickle/value.h"

namespace mckpt::impl {

// One of them, and the name that follows the tensor's.
struct AttachedValue {
  std::string name;
  PickleValue value;
};

// pre: is_torch_tensor(v). Empty for most tensors. The parts that place a DTensor, a ShardedTensor or a
// tensor of boxes are read with the tensor, and are not among them.
std::vector<AttachedValue> attached_values(PickleValue v);

}  // namespace mckpt::impl
