// SizeTree: how many bytes each module of a model has, as a tree of the dotted names. All experts of a layer
// are one branch, and equal branches are stored once, so that a model of 100,000 tensors has some hundred
// nodes:
//
//   model 1.3 TB
//     layers
//       0 .. 2    -> node 7                three layers, one node
//       3 .. 60   -> node 12
//         mlp.experts.*   256 experts
//           up_proj.weight
//     embed_tokens.weight
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/int.h"
#include "page/data/tensor_place.h"

namespace mckpt::impl {

class Store;

struct SizeNode {
  i64 bytes = 0, items = 0, tensors = 0;  // of all that is below
  ModulePart part = ModulePart::kOther;   // of the most bytes below
  // Labels and numbers of nodes, in natural order. A label "*" stands for all members of a list of experts.
  std::vector<std::pair<std::string, i64>> children{};
};

struct SizeTree {
  std::vector<SizeNode> nodes{};  // children before parents
  i64 root = -1;
  bool cut = false;  // small branches were left out of it, not out of the sums
};

// The tree of these tensors, which are in natural order. At most about `most` nodes: branches with few bytes
// are cut off where there are more.
SizeTree size_tree(const Store& store, std::span<const i64> tensors, i64 most = 6000);

}  // namespace mckpt::impl
