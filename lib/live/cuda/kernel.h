// The scatter kernel, compiled for the GPU of this host, inside the cuda module. It is compiled by NVRTC when
// the GPU is chosen, so that one binary of mckpt works on every GPU that the installed CUDA supports;
// compiling runs beside the making of CUDA's context.
#pragma once

#include <future>
#include <string>

namespace mckpt::impl {

// Compiles for a GPU of this compute capability (90 for an H100), in a thread of its own. The result is
// machine code, or PTX if this NVRTC does not know the GPU. get() throws std::runtime_error with the
// compiler's messages.
std::shared_future<std::string> compile_scatter_kernel(int capability);

std::string nvrtc_version();  // "13.0"

}  // namespace mckpt::impl
