// The parameters of a run of Megatron-FSDP, as far as the names and boxes of its checkpoint tell them: no
// config and no table of a family is asked.
//
//   model.module.decoder.layers.3.mlp.linear_fc1.weight_w  [176, 96]   --> decoder.layers.3.mlp.linear_fc1.weight
//   model.module.decoder.layers.3.mlp.linear_fc1.weight_v  [176, 96]       [352, 96], of layer decoder.layers.3
//
// They are in the order in which the run registered them. planner_data has that order but for the parts of
// fused parameters, which the save put behind everything else; those go back in front of the module that
// follows theirs (linear_fc2 behind linear_fc1, out_proj behind in_proj and conv1d).
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {

enum class DcpDialect : u8;
class Store;

// A stored tensor that is the parameter, or some rows of it.
struct StoredPart {
  i64 tensor = 0;
  i64 rows = 0;  // 1 for a tensor without dimensions
};

struct StoredParameter {
  std::string name;               // as a rank of the run has it
  std::vector<StoredPart> parts;  // in the order of their rows
  std::vector<i64> dims;          // of the whole
  std::string layer;  // the module of the layer that owns it, "decoder.layers.3"; "" outside layers
  std::string stack;  // the group of layers, or the decoder of a hybrid model, around it
  bool in_group = false;
  // The class of the layer. A layer with attention and Mamba side by side has neither class. Layers of models
  // without Megatron's names count as kTransformerLayer.
  UnitClass layer_class = UnitClass::kNone;
  bool expert = false;
  i64 expert_number = -1;  // -1: of every expert-parallel rank
  bool trainable = true;
  bool linear = false;  // the weight of a linear layer of the text model, which a run can have in 8 bits
  int cut = -1;         // the dimension that tensor-parallel ranks cut, once find_cuts() found it; -1: none
  i64 alike = -1;       // an earlier parameter of the same shape and boxes, of which it may be a second name
};

struct StoredParameters {
  std::vector<StoredParameter> all;
  bool megatron_names = false;  // some are in decoder.layers
  bool has_groups = false;      // some layers are in groups
  i64 experts = 0;              // in a layer
};

// pre: the dialect is one of Megatron-FSDP's or kStateDict. Buffers are left out.
StoredParameters stored_parameters(const Store& store, DcpDialect dialect);

}  // namespace mckpt::impl
