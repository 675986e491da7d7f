// The names in memory of models of transformers, for adapters, which have them
// (hf/adapter/lora/base_facts.h): by the rules of convert/own/disk_rules.h and convert/own/disk_transforms.h.
//
//   adapter    model.language_model.layers.0.mlp.up_proj.lora_A.weight         gemma3
//   base       language_model.model.layers.0.mlp.up_proj.weight
#pragma once

#include "hf/adapter/lora/base_facts.h"

namespace mckpt::impl {

MakeMemoryNames memory_names();

}  // namespace mckpt::impl
