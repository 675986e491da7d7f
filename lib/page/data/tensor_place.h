// The place of a tensor in a model, read from its name alone: which layer, which member of a list of experts,
// and what remains of the name when both are taken out.
//
//   model.layers.3.mlp.experts.17.up_proj.weight     section "model.layers"  layer 3  before "mlp.experts."
//                                                    member 17  after ".up_proj.weight"
//   decoder.layers.3.mlp.experts.linear_fc1.weight17_w    the same, before "mlp.experts.linear_fc1.weight", after "_w"
//   model.embed_tokens.weight                        no layer, before "model.embed_tokens.weight"
//
// Pictures have a row for each kind of tensor (before, after), a column or a block for each layer.
#pragma once

#include <string>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

struct TensorPlace {
  std::string section;  // the name up to the number of the layer; "" where there is no layer
  i64 layer = -1;
  std::string before;  // up to the number of the member; the whole rest where there is none
  i64 member = -1;
  std::string after;  // behind the number of the member

  // The name in its layer, with "*" for the number of the member: to be shown, not to be taken apart again.
  std::string kind() const { return member < 0 ? before : before + "*" + after; }
};
TensorPlace tensor_place(std::string_view name);

// The part of a model that a tensor belongs to, for its colour. A guess by the words that known programs use.
enum class ModulePart : u8 { kEmbedding, kAttention, kMlp, kExperts, kRouter, kNorm, kOptimizer, kOther };
ModulePart module_part(std::string_view name);
std::string_view module_part_name(ModulePart part);  // "embedding"

}  // namespace mckpt::impl
