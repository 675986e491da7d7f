// Row: one line of a model family's table, and the names in it.
//
//   {"decoder.layers.{L}.mlp.linear_fc1.weight", "gated_mlp",
//    {"model.layers.{L}.mlp.gate_proj.weight", "model.layers.{L}.mlp.up_proj.weight"}}
//
// {L} is a layer, {E} an expert, {M} any other number; all are global and decimal.
#pragma once

#include <array>
#include <string_view>

#include "mappings/rule.h"

namespace mckpt {

struct Row {
  std::string_view megatron;                       // run-time name, without "module."
  std::string_view rule;                           // name in all_rules()
  std::array<std::string_view, 6> hugging_face{};  // as many as the rule takes
  KeySplit split = KeySplit::kNone;                // keys in fsdp_dtensor
};

}  // namespace mckpt
