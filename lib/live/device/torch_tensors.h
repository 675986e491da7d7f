// The torch module's functions.
#pragma once

#include "runtime/modules/tensor_table.h"

namespace mckpt {

extern const MckptTensorTable kTensorFunctions;

}  // namespace mckpt
