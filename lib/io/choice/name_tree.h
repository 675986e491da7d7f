// The tensors of a store as a tree of their dotted names, with layers that are alike folded into one. It
// makes the names of 100,000 tensors readable: `inspect` prints a tree of a few lines.
//
//   model
//   |- layers.{0..27}  x28
//   |  |- mlp.up_proj.weight        names below a layer stay whole: a level is worth
//   |                               a line only where it repeats
//   `- norm.weight
//
// The states of a parameter are one line, {exp_avg,exp_avg_sq,step}, if each is a tensor of the parameter's
// shape or a count; and so are the files of ranks (mp_rank_*) whose trees are equal.
//
// Tensors of grouped experts, weight0_w to weight127_w, are one line too if they are alike: weight{0..127}_w
// x128. Two numbered branches are alike if all names, data types and shapes below them are equal. Layers of
// two kinds become two lines: layers.{0..2,4..6} x6 and layers.{3,7} x2.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;

// A line of the tree. The lines below it follow it.
struct TreeLine {
  std::string label;  // not escaped
  i64 tensor = -1;    // the tensor, or the first of those folded together; -1 for a branch
  i64 copies = 1;     // how many branches, or tensors, that are alike the line represents
  i64 bytes = 0;      // of one of them
  i64 tensors = 0;    // in one of them
  int depth = 0;
  bool last = true;  // of the lines below the same line; of no meaning at depth 0
};

// The tree of some tensors of the store, which outlives it. Lines are made when somebody asks for them: a
// list of a million lines would take much memory.
class NameTree {
 public:
  // Without `fold`, every numbered branch has a line of its own. pre: `tensors` is in natural order.
  NameTree(const Store& store, const std::vector<i64>& tensors, bool fold);
  ~NameTree();

  void each_line(const std::function<void(const TreeLine&)>& visit) const;

 private:
  class Nodes;
  std::unique_ptr<Nodes> nodes_;
};

}  // namespace mckpt::impl
