// The torch module's functions.
#pragma once

#include "runtime/modules/tensor_table.h"

namespace mckpt::impl {

extern const MckptTensorTable kTensorFunctions;

}  // namespace mckpt::impl
