// Which rows of a live parameter a context-parallel rank computes with. Every such rank holds the whole
// tensor of its tensor-parallel rank, and takes its rows when it needs them.
#pragma once

#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

struct Grid;
struct ModelConfig;
struct ModelParameter;
struct RowRange;

// All of them for what is not sliced. Throws kBadSlice where the model does not divide.
std::vector<RowRange> cp_rows(const ModelParameter& parameter, const ModelConfig& model, const Grid& grid,
                              i64 cp_rank);

}  // namespace mckpt::impl
