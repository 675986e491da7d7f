// The scatter kernel compiled by the host's compiler, with what CUDA adds to the language given here: a block
// runs thread by thread, which is the same to a kernel whose threads share nothing.
#include "tests/unit/live/scatter_kernel_on_host.h"

#include <bit>

namespace {

struct Coordinates {
  unsigned x;
};
Coordinates blockIdx, threadIdx;

unsigned __float_as_uint(float f) { return std::bit_cast<unsigned>(f); }
float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
long long __double_as_longlong(double d) { return std::bit_cast<long long>(d); }
double __longlong_as_double(long long bits) { return std::bit_cast<double>(bits); }

}  // namespace

#define __device__
#define __global__
#define __grid_constant__
#define __launch_bounds__(threads)
#include "live/cuda/scatter_kernel.cu"

namespace mckpt::impl {

void run_scatter_kernel(const ScatterBatch& batch) {
  for (blockIdx.x = 0; blockIdx.x < batch.tiles; blockIdx.x++)
    for (threadIdx.x = 0; threadIdx.x < kScatterThreads; threadIdx.x++) scatter_kernel::mckpt_scatter(batch);
}

}  // namespace mckpt::impl
