// The sections of parameters that fuse several tensors, in Megatron's order, with their names in checkpoints.
// Rules and key splits both use them.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

enum class KeySplit;
struct ModelConfig;

// A range of rows of a fused parameter that comes from one kind of head, such as all queries. Sections are
// listed without gaps from row 0 on, so the first row of a section is the sum of the rows before it.
struct FusedSection {
  std::string_view name;
  i64 rows = 0;  // over all cells
};

// pre: not kNone and not kSwiglu, whose halves depend on the parameter. Throws kModelNumbers.
std::vector<FusedSection> sections_of(KeySplit split, const ModelConfig& model);

// The rows of the whole parameter. Throws kSizeOverflow.
i64 rows_of(std::span<const FusedSection> sections);

}  // namespace mckpt::impl
