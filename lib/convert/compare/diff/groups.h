// Names that differ in their numbers alone, as one group: a model of a thousand tensors has about ten kinds.
//
//   model.layers.0.mlp.up_proj.weight  (equal)          model.layers.*.mlp.up_proj.weight   2 of 3 differ: 1, 2
//   model.layers.1.mlp.up_proj.weight  (not)      ->
//   model.layers.2.mlp.up_proj.weight  (not)            model.norm.weight                   0 of 1
//   model.norm.weight                  (equal)
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

struct Diff;

// A group, with the numbers of its members that differ. A name without numbers is a group of its own.
struct DiffGroup {
  std::string pattern;  // "*" for each number
  i64 tensors = 0, differ = 0;
  // By place of a number in the name: the numbers of tensors that differ, ascending, each once.
  std::vector<std::vector<i64>> numbers{};
};

// The groups of all compared tensors and of those that only one side has; those that differ first, weights
// before states of an optimizer, in the natural order of their patterns.
std::vector<DiffGroup> diff_groups(const Diff& diff);

// Tensors of one kind that the two sides store in the same two types.
struct TypeGroup {
  std::string pattern, a, b;  // the types
  std::string first;          // the name of one of them
  i64 tensors = 0;
  std::vector<std::vector<i64>> numbers{};  // as of a DiffGroup
};
// In the natural order of the patterns.
std::vector<TypeGroup> type_groups(const Diff& diff);

// "1, 2, 7..9"
std::string ranges_text(const std::vector<i64>& numbers, std::size_t most);

}  // namespace mckpt::impl
