// The readers of config.json: each family of models spells its numbers in its own way, and a reader fills the
// one ModelConfig that all rules use.
//
//   qwen3_moe    "num_experts": 128, "moe_intermediate_size": 768      -->  moe.experts 128, moe.ffn 768
//   gpt_oss      "num_local_experts": 32, "intermediate_size": 2880    -->  moe.experts 32, moe.ffn 2880
#pragma once

#include "mappings/config.h"
#include "hf/config_fields.h"

namespace mckpt::impl {

// Fills the model from the config's top-level object. pre: model.model_type is set. Throws kBadConfig for a
// missing or impossible entry, kUnsupportedModel for a feature that Megatron's model of the family lacks.
using FamilyReader = void (*)(const ConfigFields& top, ModelConfig& model);

// The reader of a family, by the family's name. Throws kInternal for a family without a reader (a test asks
// for all).
FamilyReader family_reader(std::string_view family);

}  // namespace mckpt::impl
