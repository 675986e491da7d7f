// The cuda module as the rest of lib/live calls it.
#pragma once

#include "live/cuda/cuda_table.h"

namespace mckpt::impl {

// Loads the module at the first call. Throws kModuleMissing.
const MckptCudaTable& cuda();

// Throws kRanksFailed with CUDA's own words where a call has failed.
void check_cuda(const char* error, const char* call);

}  // namespace mckpt::impl
