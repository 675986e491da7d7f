// Tensors of torchtitan's models as a Hugging Face folder has them:
//
//   tok_embeddings.weight                                   model.embed_tokens.weight
//   layers.1.attention_norm.weight                          model.layers.1.input_layernorm.weight
//   layers.1.moe.routed_experts.inner_experts.w2_EDF  -->   model.layers.1.mlp.experts.0.down_proj.weight ...
//
// Its Llama 3 and Muse Glimmer turn pairs of neighbouring rows of queries and keys, transformers the two
// halves of a head, so these rows have another order: row h * d + 2 i + j of torchtitan is row h * d + j * d
// / 2 + i on disk. The names are in titan_tables.h.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convert/own/disk_names.h"
#include "core/base/int.h"
#include "hf/config/tower_numbers.h"

namespace mckpt::impl {

struct HfConfig;

// The facts of the model. The pointers may be null and the numbers zero.
struct TitanConfig {
  const HfConfig* config = nullptr;  // of a model that a table reads
  std::string_view model_type{};     // of any other config; empty: there is none
  TowerNumbers numbers{};
  bool stacks = false;  // the folder has the experts of a layer as one tensor
};

struct TitanTensors {
  std::vector<PiecedTensor> tensors;
  std::vector<i64> beside;         // buffers that the model's folder has not
  std::vector<i64> floats_beside;  // of these, those whose values training found
  std::string model;               // "llama3", "qwen3"
};

// Whether the names are torchtitan's, or those that torchtitan has from the authors of the model. Models that
// no table has are among them.
bool is_of_titan(std::span<const NamedTensor> model);

// pre: is_of_titan(). Throws kUnknownModel if torchtitan's names of this model are not known, kUnknownAssets
// if a number is needed that no config states, kUnaccounted for names that are not in the table and for parts
// that are missing, kSourceShape, and kAmbiguousLayout for experts that may be transposed.
TitanTensors titan_tensors(const Store& store, std::span<const NamedTensor> model, const TitanConfig& config);

}  // namespace mckpt::impl
