// The scatter kernel, carried out by the host: what CI can test of it without a GPU.
#pragma once

#include "live/cuda/scatter_batch.h"

namespace mckpt::impl {

void run_scatter_kernel(const ScatterBatch& batch);

}  // namespace mckpt::impl
