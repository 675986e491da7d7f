// Four rows at a time, so that the sum is loaded and stored once for four products; a compiler makes vectors
// of it. The sums of a block of columns are made apart from `out`: where rows and `out` are a multiple of a
// page apart, a processor takes each store for one into the next load, and waits for it.
#include "core/items/row_sums.h"

#include <algorithm>
#include <cstddef>

namespace mckpt::impl {

namespace {

constexpr std::size_t kBlock = 64;

// Columns [first, first + columns) of the sum. pre: columns <= kBlock
void sum_block(std::span<const float> factors, std::span<const float* const> rows, std::size_t first,
               std::size_t columns, float* out) {
  float sums[kBlock] = {};
  std::size_t k = 0;
  for (; k + 4 <= factors.size(); k += 4) {
    const float a = factors[k], b = factors[k + 1], c = factors[k + 2], d = factors[k + 3];
    const float *x = rows[k] + first, *y = rows[k + 1] + first, *z = rows[k + 2] + first,
                *w = rows[k + 3] + first;
    for (std::size_t j = 0; j < columns; j++) sums[j] += (a * x[j] + b * y[j]) + (c * z[j] + d * w[j]);
  }
  for (; k < factors.size(); k++) {
    const float a = factors[k];
    const float* x = rows[k] + first;
    for (std::size_t j = 0; j < columns; j++) sums[j] += a * x[j];
  }
  std::copy_n(sums, columns, out);
}

}  // namespace

void sum_rows(std::span<const float> factors, std::span<const float* const> rows, std::span<float> out) {
  for (std::size_t first = 0; first < out.size(); first += kBlock)
    sum_block(factors, rows, first, std::min(kBlock, out.size() - first), out.data() + first);
}

}  // namespace mckpt::impl
