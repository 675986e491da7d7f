// The tensors of a store as a tree of their dotted names, with layers that are alike folded into one:
//
//   model
//   |- layers.{0..27}  x28
//   |  |- mlp.up_proj.weight        names below a layer stay whole: a level is worth
//   |                               a line only where it repeats
//   `- norm.weight
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;

struct NameTree {
  std::string label;  // not escaped
  i64 tensor = -1;    // the tensor, or the first of those folded together; -1 for a branch
  i64 copies = 1;     // how many alike the line stands for
  i64 bytes = 0;      // of one of them
  i64 tensors = 0;    // in one of them
  std::vector<NameTree> children;
};

// pre: `tensors` is in natural order. Without `fold`, every numbered branch has a line of its own.
std::vector<NameTree> name_tree(const Store& store, const std::vector<i64>& tensors, bool fold);

// How many lines it takes.
i64 line_count(const std::vector<NameTree>& tree);

}  // namespace mckpt::impl
