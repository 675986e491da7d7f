// The models of torchtitan whose names are known: what torchtitan calls a tensor, and what the model's
// Hugging Face folder has for it. A new spelling is a row; a new model is a line of titan_models() and its
// rows.
//
// Where torchtitan's own to_hf() writes names that no release of the model has (the stacks of gpt_oss and of
// qwen3_5_moe), the row follows the releases (docs/formats/own_names.md).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

// The change of the items.
enum class TitanMove : u8 {
  kCopy,
  kQuery,      // rows of heads; some models have another order of them
  kKey,        // the same, with the number of groups instead of heads
  kTowerHead,  // rows of the heads of the vision tower, in that order too
  kQkv,        // queries, keys and values of one group after the other; {P} in the name is q, k or v
  kPart,       // the rows of several tensors, one after the other: `part` of `parts`
  kExperts,    // [experts, out, in]: {E} in the name is the expert
  kSwap,       // the last two dimensions change places
  kPatches,    // [out, channels * frames * side * side] with a dimension for each; `parts` counts dimensions
  kNone,       // a buffer that no folder has, and that is computed
  kLeft,       // a buffer that no folder of this model has, and whose values training found
};

// One name behind the front of its group, and what the folder has behind its own front. A sign stands for a
// word of several: * for weight and bias, # for the matrices of a gated module, which are w1, w3 and w2 in
// torchtitan and gate, up and down in the folder.
struct TitanRow {
  std::string_view titan, disk;
  TitanMove move = TitanMove::kCopy;
  u8 part = 0, parts = 0;
};

struct TitanModel {
  std::string_view titan;                // torchtitan's name of it
  std::string_view families[2];          // of its config: a family of the tables, or a model_type
  std::string_view text, head = "";      // in front of the text model's names, and of lm_head
  std::span<const TitanRow> once[2];     // whole names; {T} and {H} are the fronts
  std::span<const TitanRow> layer[6];    // behind "layers.{L}." and `text` + "layers.{L}."
  std::string_view tower_layers = "";    // "model.visual.blocks."
  std::span<const TitanRow> tower = {};  // behind "vision_encoder.layers.{L}."
  bool pairs = false;                    // rows of queries and keys are turned in pairs
  bool mtp = false;                      // "mtp_layers.{N}.", which the folder has behind the other layers
};

// The row of a name, with its `disk` without signs; no row: the name is none of these.
struct FoundRow {
  const TitanRow* row = nullptr;
  std::string disk{};
};
FoundRow find_row(std::span<const TitanRow> rows, std::string_view titan);

std::span<const TitanModel> titan_models();
// Behind "mtp_layers.{N}." in addition.
std::span<const TitanRow> titan_mtp_rows();

// The model of a config: by its family or its model_type. Null: no table is for it.
const TitanModel* titan_model(std::string_view family);

}  // namespace mckpt::impl
