// The parts of the cuda module that its files share: the table, and the facts for its description of itself.
#pragma once

#include <string>
#include <vector>

#include "live/cuda/cuda_table.h"

namespace mckpt::impl {

// The CUDA on this host, as `mckpt env` lists it.
struct CudaFacts {
  int driver = 0;                    // the newest CUDA that it supports: 13000 is 13.0; 0: there is no driver
  std::string compiler{};            // the version of NVRTC; "" if it was not found
  std::vector<std::string> devices;  // their names
};

CudaFacts look_at_cuda();  // throws std::runtime_error with the driver's own words

extern const MckptCudaTable kCudaFunctions;

}  // namespace mckpt::impl
