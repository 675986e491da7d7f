// Row: one line of a model family's table: a Megatron parameter, the rule that makes it, the Hugging Face
// tensors it is made from, and when a model has it:
//
//   {"mlp.linear_fc1.weight", "gated_mlp",
//    {{"mlp.gate_proj.weight", "ffn hidden"}, {"mlp.up_proj.weight", "ffn hidden"}}, .split = kSwiglu}
//
// Names follow the prefixes of the row's section. Numbers in names are written as placeholders:
//
//   {L} layer          {E} expert     {M} MTP depth, or merger
//   {I} layer of an MTP depth         {N} layers + M         {F} M * layers of a depth + I
//   {S} expert of the second pool, which files count on: experts + E
//   {P} part of a tensor that files have cut along its rows (mappings/model/source_parts.h); of sources only
//
// Shapes are written in the words of mappings/shape_text.h.
#pragma once

#include <array>
#include <string_view>

#include "core/base/int.h"
#include "mappings/key_split.h"
#include "mappings/needs.h"

namespace mckpt::impl {

// A Hugging Face tensor of a row: its name after the section's prefix, and the shape that the config
// promises.
struct Source {
  std::string_view name;
  std::string_view shape;

  // Files have it in parts, cut along its rows: the name has {P} (mappings/model/source_parts.h).
  constexpr bool in_parts() const { return name.find("{P}") != std::string_view::npos; }
};

// The layer that has the row, in Row::gathered_with.
inline constexpr std::string_view kOwnLayer = "layer";

struct Row {
  std::string_view megatron;
  std::string_view rule;            // name in all_rules()
  std::array<Source, 6> sources{};  // one for each role of the rule
  Needs needs = Needs::kAlways;
  KeySplit split = KeySplit::kNone;  // keys in fsdp_dtensor
  bool buffer = false;          // persistent buffer: never sharded by FSDP; fp32, unless it is typed_as_model
  bool typed_as_model = false;  // a buffer that has the type of the model's parameters
  bool fp32 = false;            // fp32 at run time, whatever the type of all others
  bool counter = false;         // a buffer of integers, which no run casts
  // Of `replicate_slice`: which row or item of its source, which other rows of the table may read too.
  i64 slice = 0;
  bool first_cells = false;  // Megatron-FSDP saves the first cell's part as if it were the whole
  bool alternates = false;   // alternates with the row before: weight0, bias0, weight1, ...
  std::string_view also{};   // another spelling of the first source's name, in older or newer files
  bool whole_names = false;  // names of sources do not get the section's prefix
  // A module whose own code reads the parameter without calling the module that has it, so that gathering
  // that module gathers the parameter too: kOwnLayer, or a whole name, "decoder.layers.{L}.mixer". Where the
  // row has no {L}, it is that module of every layer.
  std::string_view gathered_with{};
  bool stateless = false;  // its module saves no extra state in torch_dist, though its name does not show it

  bool expert() const { return megatron.find("{E}") != std::string_view::npos; }
  // Whether the parameter is of Megatron's SequentialMLP: each expert is a module of its own, which counts
  // from 0 on every rank.
  bool local_expert() const { return megatron.find(".local_experts.{E}.") != std::string_view::npos; }
};

}  // namespace mckpt::impl
