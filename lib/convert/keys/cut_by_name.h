// How tensor-parallel ranks of Megatron cut a parameter, by the name of its module alone: for one rank's
// file, whose model nobody knows.
//
//   decoder.layers.0.self_attention.linear_qkv.weight   dimension 0     ColumnParallelLinear
//   decoder.layers.0.self_attention.linear_proj.weight  dimension 1     RowParallelLinear
//   decoder.layers.0.self_attention.linear_proj.bias    whole on every rank
#pragma once

#include <optional>
#include <string_view>

namespace mckpt::impl {

// -1: whole on every rank. Nothing for a name that Megatron's modules do not have.
std::optional<int> cut_by_name(std::string_view parameter);

}  // namespace mckpt::impl
