// The scatter kernel as compiled for a GPU, inside the cuda module.
#pragma once

#include <future>
#include <string>

namespace mckpt::impl {

// Compiles for a GPU of this compute capability (90), in a thread of its own: machine code, or PTX where this
// NVRTC does not know the GPU. get() throws std::runtime_error with what the compiler said.
std::shared_future<std::string> compile_scatter_kernel(int capability);

std::string nvrtc_version();  // "13.0"

}  // namespace mckpt::impl
