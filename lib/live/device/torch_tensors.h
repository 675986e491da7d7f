// The torch module's functions: MckptTensorTable (runtime/modules/tensor_table.h) over ATen. Only files of
// the module include this header.
#pragma once

#include "runtime/modules/tensor_table.h"

namespace mckpt::impl {

extern const MckptTensorTable kTensorFunctions;

}  // namespace mckpt::impl
