// The calls by which a pickle makes tensors, as torch's own functions take them. A call with other arguments
// is one that torch refuses: the file does not load, whatever its bytes are.
//
//   _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks[, metadata])
//   _rebuild_parameter(data, requires_grad, backward_hooks)
#pragma once

#include "core/items/dtype.h"
#include "io/pickle/classes.h"
#include "io/pickle/value.h"

namespace mckpt::impl {

// A function that rebuilds a tensor, and its arguments: directly, or handed to _rebuild_from_type_v2 as
// (function, type, arguments, state).
struct TorchCall {
  Known function = Known::kNothing;
  PickleValue args{}, type{}, state{};
  bool has_state = false;  // it is _rebuild_parameter_with_state
  i64 outer_args = -1;     // how many _rebuild_from_type_v2 was given, where it is the caller
};

// kNothing for what is no such call.
TorchCall torch_call(PickleValue v);

// Throws kBadPickle where torch's function takes another number of arguments, or others than these.
void check_torch_call(const TorchCall& call);

// To be called when the type is known. Throws kBadPickle where torch does not let the tensor have the
// requires_grad that the call gives it.
void check_gradient(const TorchCall& call, DType dtype);

}  // namespace mckpt::impl
