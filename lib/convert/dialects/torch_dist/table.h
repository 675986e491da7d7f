// The table of torch_dist: rows of a parameter <-> a box of a tensor. The plan of a save walks it with the
// parameters of each rank, the view of a checkpoint with those that one rank alone would have:
//
//   decoder.layers.3.mlp.linear_fc1.weight   gate   decoder.layers.mlp.linear_fc1.weight      [3] rows 0-15
//                                            up     the same                                  [3] rows 16-31
//   decoder.layers.0.mixer.in_proj.weight    z      decoder.layers.0.mixer.in_proj.weight.z   rows 0-63
//
// A save has one form of a parameter: its name, and whether its parts have tensors of their own. Layers that
// are alike are one tensor, all experts of a layer another, and versions of Megatron name the layers of MTP
// differently, so a name may be at several places:
//
//   decoder.layers.3.mlp.experts.linear_fc1.weight7
//       decoder.layers.mlp.experts.experts.linear_fc1.weight      at [3, 7]     stacked layers
//       decoder.layers.3.mlp.experts.experts.linear_fc1.weight    at [7]        layers by number
//       decoder.layers.3.mlp.experts.experts.7.linear_fc1.weight                experts by number, too
//
// A model that tells two kinds of attention layers apart (ModelConfig: AttentionKind) has each kind under a
// name of its own, and stacks the layers of the kind alone. Layers 0, 1 and 3 of 4 are sliding:
//
//   decoder.layers.3.self_attention.linear_proj.weight
//       decoder.layers.self_attention_sliding.linear_proj.weight      at [2]
//       decoder.layers.3.self_attention_sliding.linear_proj.weight
//
// Readers look for all forms at all places, a writer takes one of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "mappings/rule.h"

namespace mckpt::impl {

class GroupedPlaces;
struct ModelConfig;
struct ModelParameter;

// A tensor, and the indices along its first dimensions at which the parameter is.
struct TorchDistPlace {
  std::string name;
  std::vector<i64> at;
};

// All places of a parameter, or of a part of one, in the order in which a reader looks at them. `in_stack`:
// the place of its layer in a stack, where that is not the layer's number.
std::vector<TorchDistPlace> torch_dist_places(std::string_view name, std::optional<i64> in_stack = {});
// The place that Megatron writes. `stacked`: the layers of the parameter's block are one tensor. MTP of GPT
// models has the name "transformer_layer" (core/hybrid/mtp_names.h), MTP of hybrid models the name that it
// has at run time, and experts are always one tensor.
TorchDistPlace torch_dist_place(std::string_view name, bool stacked, std::optional<i64> in_stack = {});

// The tensor of a state of the optimizer of that kind, "exp_avg", by the place of its parameter.
std::string torch_dist_state(std::string_view kind, std::string_view place);

// The name by which the places of a parameter are found.
struct SavedName {
  std::string text;
  std::optional<i64> in_stack = {};  // as torch_dist_places() has it
};

// How a save has a parameter: its name, and the parts that have tensors.
struct SavedForm {
  SavedName name;
  KeySplit split = KeySplit::kNone;
};

// The name of a parameter of attention in a model whose kinds of layers are saved apart. Nothing for another
// parameter.
std::optional<SavedName> name_by_kind(const ModelParameter& p, const ModelConfig& model);
// How many layers the stack has in which the parameter's layer is. pre: the layers of its block are stacked.
i64 layers_of_stack(const ModelParameter& p, const ModelConfig& model);
// Whether the parameter is of a module that Megatron takes over from Hugging Face: such a module saves its
// tensors under their names at run time, and nothing beside them.
bool is_copied(const ModelParameter& p);

// The parts under which Megatron writes a parameter: gated ones are whole, with gate before up.
KeySplit torch_dist_split(const ModelParameter& p);
// The form that Megatron writes. `own_norms`: norms in front of experts have the name of Megatron's own
// modules. Convolutions have their name with a dot in any case. `groups`: of the model; null if it has none.
SavedForm torch_dist_form(const ModelParameter& p, const ModelConfig& model, bool own_norms,
                          const GroupedPlaces* groups = nullptr);
// All forms of a parameter under that name, in the order in which a reader looks for them.
std::vector<SavedForm> torch_dist_forms(const ModelParameter& p, const SavedName& name);

// The name under which Megatron's own modules save the norm in front of experts, as if it were fused:
// "...mlp.linear_fc1.layer_norm_weight" of "...pre_mlp_layernorm.weight". Nothing for another parameter.
std::optional<std::string> own_norm_of_experts(const ModelParameter& p);

// A row of the table.
struct TorchDistRow {
  std::string key;  // of the table of keys: the parameter, or its part that has a tensor of its own
  SavedName name;   // of that tensor
  Piece piece;      // the rows of the parameter, as the cell has it
  std::vector<i64> offsets, sizes;  // the box in the tensor, behind the indices of layers and experts
};

// The rows that the cell of the parameter has, which are all of its items. The parts of a fused parameter are
// rows of their own in either form, as each cell has its share of each of them. Throws what pieces_of()
// throws.
std::vector<TorchDistRow> torch_dist_rows(const ModelParameter& p, const SavedForm& form,
                                          const ModelConfig& model);

}  // namespace mckpt::impl
