// Recognises what a tensor is by its name and its shape: the parameter of Megatron, its rule and its role in
// it. Names are those that programs and families have given such tensors; the shape must be the one that the
// numbers of the model give for the role. What the two do not settle is a question for a person.
//
//   model.layers.{L}.mlp.c_fc.bias [80]            mlp.linear_fc1.bias, column, "ffn"
//   model.layers.{L}.mlp.gate_up_proj.weight       mlp.linear_fc1.weight, gated_mlp_joined; to decide: is gate above up?
//   model.layers.{L}.foo.weight [7, 48]            nothing; to decide: which parameter it is
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "mappings/key_split.h"
#include "mappings/needs.h"

namespace mckpt::impl {

struct ModelConfig;
struct NameKind;

// The names that decide together with a kind's own: whether there is a gate beside `up`, which norms a layer
// has.
using KindNames = std::set<std::string, std::less<>>;

struct Recognised {
  std::string
      leaf{};  // Megatron's name after the prefix of the layer, or the whole name; "" if it is not known
  std::string rule{};   // "" with `leaf`
  std::string shape{};  // in words
  int slot = 0;         // the role in the rule
  KeySplit split = KeySplit::kNone;
  Needs needs = Needs::kAlways;
  bool buffer = false;
  std::string todo{};    // what is to be decided; "" if all is settled
  std::string unread{};  // why the tensor is not read; "" if it is
};

Recognised recognise(const NameKind& kind, const KindNames& names, const ModelConfig& model);

}  // namespace mckpt::impl
