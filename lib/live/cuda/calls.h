// The cuda module as the rest of lib/live calls it: its table, and the one way in which its errors are
// thrown.
#pragma once

#include "live/cuda/cuda_table.h"

namespace mckpt::impl {

// The table. Loads the module at the first call. Throws kModuleMissing.
const MckptCudaTable& cuda();

// Throws kRanksFailed with CUDA's own words if a call returned an error. `call`: what was being done,
// "copying".
void check_cuda(const char* error, const char* call);

}  // namespace mckpt::impl
