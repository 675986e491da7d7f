// NameKind: the tensors of a model whose names differ in the numbers of layers and experts alone.
//
//   model.layers.0.mlp.experts.0.up_proj.weight   }
//   model.layers.0.mlp.experts.1.up_proj.weight   }   model.layers.{L}.mlp.experts.{E}.up_proj.weight
//   model.layers.1.mlp.experts.0.up_proj.weight   }
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class SourceTable;

struct NameKind {
  std::string name;
  i64 tensors = 0;
  std::vector<i64> dims;  // of the first tensor
  bool sized = true;      // the headers are known, and all shapes are alike
};

// In the order of the first tensor of each.
std::vector<NameKind> name_kinds(const SourceTable& tensors);

// The name of a table's row as a kind has it: layers of MTP depths and of mergers have numbers of layers in
// files.
std::string kind_name(std::string_view pattern);

}  // namespace mckpt::impl
