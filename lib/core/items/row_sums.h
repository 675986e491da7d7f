// The inner loop of a product of matrices: one row of the product as a sum of rows of the right factor.
//
//   product [3, 5] = left [3, 2] * right [2, 5]
//   row i of the product = left[i, 0] * row 0 of right + left[i, 1] * row 1 of right
#pragma once

#include <span>

namespace mckpt::impl {

// out[j] = sum over k of factors[k] * rows[k][j], in float, in no order that is promised. pre: as many
// factors as rows, each of out.size() items, which do not overlap `out`.
void sum_rows(std::span<const float> factors, std::span<const float* const> rows, std::span<float> out);

}  // namespace mckpt::impl
