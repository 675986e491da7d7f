// The calls by which a pickle makes tensors, as torch's own functions take them. torch refuses a call with
// other arguments, and then the file does not load, whatever its bytes are.
//
//   _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks[, metadata])
//   _rebuild_parameter(data, requires_grad, backward_hooks)
//   _rebuild_from_type_v2(function, type, arguments, state)    a subclass such as DTensor, around one of them
#pragma once

#include "core/items/dtype.h"
#include "io/pickle/classes.h"
#include "io/pickle/value.h"

namespace mckpt::impl {

// A function that rebuilds a tensor, and its arguments, whether it is called directly or by
// _rebuild_from_type_v2. Made of an object of the pickle; nothing is called.
struct TorchCall {
  Known function = Known::kNothing;
  PickleValue args{}, type{}, state{};
  bool has_state = false;  // it is _rebuild_parameter_with_state
  i64 outer_args = -1;     // how many _rebuild_from_type_v2 was given, where it is the caller
};

constexpr i64 kFromTypeArgs = 4;  // of _rebuild_from_type_v2

// kNothing for a value that is not such a call.
TorchCall torch_call(PickleValue v);

// The argument behind requires_grad, which torch's writers leave empty; None where the function has none.
PickleValue backward_hooks(const TorchCall& call);

// Throws kBadPickle where torch's function takes another number or kind of arguments.
void check_torch_call(const TorchCall& call);

// Throws kBadPickle where torch does not allow the requires_grad of the call. pre: the tensor has this
// type.
void check_gradient(const TorchCall& call, DType dtype);

}  // namespace mckpt::impl
