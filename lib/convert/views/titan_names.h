// Tensors of torchtitan's models as a Hugging Face folder has them:
//
//   tok_embeddings.weight                                   model.embed_tokens.weight
//   layers.1.attention_norm.weight                          model.layers.1.input_layernorm.weight
//   layers.1.moe.routed_experts.inner_experts.w2_EDF  -->   model.layers.1.mlp.experts.0.down_proj.weight ...
//
// Its Llama 3 turns pairs of neighbouring rows of queries and keys, transformers the two halves of a head, so
// these rows have another order: row h * d + 2 i + j of torchtitan is row h * d + j * d / 2 + i on disk.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "convert/views/disk_names.h"
#include "core/base/int.h"

namespace mckpt::impl {

struct HfConfig;

struct TitanTensors {
  std::vector<PiecedTensor> tensors;
  std::vector<i64> beside;  // buffers that no Hugging Face folder has
  std::string model;        // "llama3", "qwen3"
};

// Whether the names are torchtitan's, or those that torchtitan has from Meta's own Llama.
bool is_of_titan(std::span<const NamedTensor> model);

// pre: is_of_titan(). `config` may be null where nothing depends on it. Throws kUnknownModel if torchtitan's
// names of this model are not known, kUnknownAssets if the number of heads is needed and not known,
// kUnaccounted for names that are not in the table, kSourceShape, and kAmbiguousLayout for experts that may
// be transposed.
TitanTensors titan_tensors(const Store& store, std::span<const NamedTensor> model, const HfConfig* config);

}  // namespace mckpt::impl
