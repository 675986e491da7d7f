// Which rows of a parameter a context-parallel rank computes with. Every such rank holds the whole tensor of
// its tensor-parallel rank and takes its rows in the forward pass.
//
//   A_log of 8 heads, cp 2      rank 0: rows 0-3      rank 1: rows 4-7
//   linear_qkv                  all ranks: all rows
#pragma once

#include <vector>

#include "core/base/int.h"
#include "core/hybrid/cp_slice.h"

namespace mckpt::impl {

struct Grid;
struct ModelConfig;
struct ModelParameter;

// The rows of one rank, in the order in which it uses them; all rows of a parameter that is not sliced.
// Throws kBadSlice if the sizes of the mixer do not divide by the number of ranks.
std::vector<RowRange> cp_rows(const ModelParameter& parameter, const ModelConfig& model, const Grid& grid,
                              i64 cp_rank);

// The rows of one rank as cp_rows() gives them; nothing for a parameter of which the rank uses all rows.
std::vector<RowRange> cp_slice_of(const ModelParameter& parameter, const ModelConfig& model, const Grid& grid,
                                  i64 cp_rank);

}  // namespace mckpt::impl
