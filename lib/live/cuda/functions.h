// The parts of the cuda module that its files share: the table, and the facts for its description of itself.
#pragma once

#include <string>
#include <vector>

#include "live/cuda/cuda_table.h"

namespace mckpt::impl {

// The CUDA on this host, as `mckpt env` lists it.
struct CudaFacts {
  int version = 0, driver = 0;       // 13000 is 13.0; driver 0: there is none
  std::vector<std::string> devices;  // their names
};

CudaFacts look_at_cuda();  // throws std::runtime_error with CUDA's own words

extern const MckptCudaTable kCudaFunctions;

}  // namespace mckpt::impl
