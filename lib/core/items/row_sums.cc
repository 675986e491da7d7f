// Four rows at a time, so that the sum is loaded and stored once for four products; a compiler makes vectors
// of it.
#include "core/items/row_sums.h"

#include <algorithm>
#include <cstddef>

namespace mckpt::impl {

void sum_rows(std::span<const float> factors, std::span<const float* const> rows, std::span<float> out) {
  const std::size_t columns = out.size(), count = factors.size();
  float* __restrict to = out.data();
  std::ranges::fill(out, 0.0f);
  std::size_t k = 0;
  for (; k + 4 <= count; k += 4) {
    const float a = factors[k], b = factors[k + 1], c = factors[k + 2], d = factors[k + 3];
    const float *x = rows[k], *y = rows[k + 1], *z = rows[k + 2], *w = rows[k + 3];
    for (std::size_t j = 0; j < columns; j++) to[j] += (a * x[j] + b * y[j]) + (c * z[j] + d * w[j]);
  }
  for (; k < count; k++) {
    const float a = factors[k];
    const float* x = rows[k];
    for (std::size_t j = 0; j < columns; j++) to[j] += a * x[j];
  }
}

}  // namespace mckpt::impl
