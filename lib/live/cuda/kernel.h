// The scatter kernel, compiled for the GPU of this host, inside the cuda module. It is compiled by NVRTC when
// it is first wanted, so that one binary of mckpt works on every GPU that the installed CUDA supports, and a
// load that only copies needs no compiler; compiling can run beside the making of CUDA's context.
#pragma once

#include <future>
#include <string>

namespace mckpt::impl {

// Compiles for GPUs of this compute capability (90 for an H100), in a thread of its own, once in a process.
// The result is machine code, or PTX if this NVRTC does not know the GPU. get() throws std::runtime_error
// with the compiler's messages.
std::shared_future<std::string> compile_scatter_kernel(int capability);
bool is_wanted(int capability);  // whether that was called

std::string nvrtc_version();  // "13.0". Throws std::runtime_error if there is none

}  // namespace mckpt::impl
