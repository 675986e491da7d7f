// The table of the cuda module, and its description of itself.
#pragma once

#include <string>
#include <vector>

#include "live/cuda/cuda_table.h"

namespace mckpt::impl {

struct CudaFacts {
  int version = 0, driver = 0;       // 13000 is 13.0; 0 where there is no driver
  std::vector<std::string> devices;  // their names
};

CudaFacts look_at_cuda();  // throws std::runtime_error with CUDA's own words

extern const MckptCudaTable kCudaFunctions;

}  // namespace mckpt::impl
