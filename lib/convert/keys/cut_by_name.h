// How tensor-parallel ranks of Megatron cut a parameter, by the name of its module alone: one rank's
// file does not tell its model.
//
//   decoder.layers.0.self_attention.linear_qkv.weight   dimension 0     ColumnParallelLinear
//   decoder.layers.0.self_attention.linear_proj.weight  dimension 1     RowParallelLinear
//   decoder.layers.0.self_attention.linear_proj.bias    whole on every rank
#pragma once

#include <optional>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

// -1: whole on every rank. Nothing for a name that Megatron's modules do not have.
std::optional<int> cut_by_name(std::string_view parameter);

// Whether the module is of Megatron's own language model, or of a vision tower that is made of Megatron's
// layers. Ranks have other towers whole, as transformers made them, however their modules are called:
// visual.blocks.0.mlp.linear_fc1, vision_model.transformer.resblocks.0.attn.out_proj.
bool is_own_module(std::string_view parameter);

// How a rank's rows of a parameter lie in the whole.
enum class CutRows : u8 {
  kTogether,
  kSections,  // some of each section: in_proj and conv1d of a mixer
  kGated,     // of an MLP that may be gated: then some of the gate and some of the rest
};
// pre: cut_by_name() says a dimension.
CutRows cut_rows(std::string_view parameter);

}  // namespace mckpt::impl
