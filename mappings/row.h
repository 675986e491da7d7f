// Row: one line of a model family's table. It says by which rule a Megatron parameter comes from which
// Hugging Face tensors, and when the model has it:
//
//   {"mlp.linear_fc1.weight", "gated_mlp",
//    {{"mlp.gate_proj.weight", "ffn hidden"}, {"mlp.up_proj.weight", "ffn hidden"}}, .split = kSwiglu}
//
// Names stand behind the prefixes of the row's section. Numbers in them are written as placeholders:
//
//   {L} layer          {E} expert     {M} MTP depth, or merger
//   {I} layer of an MTP depth         {N} layers + M         {F} M * layers of a depth + I
//
// Shapes are written in the words of mappings/shape_text.h.
#pragma once

#include <array>
#include <string_view>

#include "mappings/rule.h"

namespace mckpt {

// What a model must have for a row to apply; needs_name() spells them.
enum class Needs : u8 {
  kAlways,
  kQkvBias,
  kProjBias,
  kQkNorm,
  kSinks,
  kQueryLora,
  kNoQueryLora,
  kRouterBias,
  kExpertBias,
  kLatent,
  kSharedExpert,
  kSharedGate,
  kTied,
  kUntied,
  kExpertsApart,  // one tensor an expert
  kExpertsFused,  // [experts, out, in]
  kExpertsHub,    // [experts, in, out]
};

struct Source {
  std::string_view name;
  std::string_view shape;
};

struct Row {
  std::string_view megatron;
  std::string_view rule;            // name in all_rules()
  std::array<Source, 6> sources{};  // as many as the rule has roles
  Needs needs = Needs::kAlways;
  KeySplit split = KeySplit::kNone;  // keys in fsdp_dtensor
  bool buffer = false;       // persistent, fp32 whatever the model's type is, and never sharded by FSDP
  bool alternates = false;   // with the row before, expert by expert: weight0, bias0, weight1, ...
  std::string_view also{};   // another spelling of the first source's name, as old or new files have it
  bool whole_names = false;  // the names of the sources stand alone, without the section's prefix

  bool expert() const { return megatron.find("{E}") != std::string_view::npos; }
};

}  // namespace mckpt
