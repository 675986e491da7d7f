// Parts of a config that a family's table cannot say by an entry of config.json alone: functions by name,
// which a step of the kind kPart calls (mappings/config_steps.h). A new one is a function and a row of the
// table in named_parts.cc.
//
//   part("gdn_layers")        layer_types or full_attention_interval   -->   the mixer of each layer
//   part("qwen_vision", 1)    vision_config                            -->   a tower; 1: with deepstack mergers
#pragma once

#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class ConfigFields;
struct ModelConfig;

// `number`: the step's number.
using NamedPart = void (*)(const ConfigFields& c, ModelConfig& m, i64 number);

// Throws kInternal for a name that no function has.
NamedPart named_part(std::string_view name);

// Which layers have which mixer and feed-forward part (layer_parts.cc).
void read_shared_gate(const ConfigFields& c, ModelConfig& m, i64);
void read_sparse_layers(const ConfigFields& c, ModelConfig& m, i64);
void read_experts_everywhere(const ConfigFields& c, ModelConfig& m, i64);
void read_gdn_layers(const ConfigFields& c, ModelConfig& m, i64);
void read_latent_head_dim(const ConfigFields& c, ModelConfig& m, i64);
void read_head_dim_of_hidden(const ConfigFields& c, ModelConfig& m, i64);
void read_every_few_experts(const ConfigFields& c, ModelConfig& m, i64);
void read_low_rank_queries(const ConfigFields& c, ModelConfig& m, i64);
void read_indexer_types(const ConfigFields& c, ModelConfig& m, i64);
void read_as_many_groups(const ConfigFields& c, ModelConfig& m, i64);
void read_interval_layers(const ConfigFields& c, ModelConfig& m, i64);
void read_first_dense_layers(const ConfigFields& c, ModelConfig& m, i64);
void read_mamba_head_dim(const ConfigFields& c, ModelConfig& m, i64);
void read_llama4_layers(const ConfigFields& c, ModelConfig& m, i64);
void read_minimax_layers(const ConfigFields& c, ModelConfig& m, i64);
void read_ernie_pools(const ConfigFields& c, ModelConfig& m, i64);
// Nemotron-H (hybrid_layers.cc): the kind of each layer, by a pattern, and the sizes that they need.
void read_hybrid_layers(const ConfigFields& c, ModelConfig& m, i64);
// Step-3.5 and MiMo-V2-Flash (layers_of_two_kinds.cc): which layers have which heads, and which have experts.
void read_step_layers(const ConfigFields& c, ModelConfig& m, i64);
void read_mimo_v2_layers(const ConfigFields& c, ModelConfig& m, i64);
// DeepSeek-V4 (deepseek_v4_layers.cc): which layers compress keys, and which have a table of experts.
void read_deepseek_v4_layers(const ConfigFields& c, ModelConfig& m, i64);
// Qwen4-Exp (ngram_layers.cc): the mixer of each layer, and which have a table of n-grams of how many rows.
void read_qwen4_layers(const ConfigFields& c, ModelConfig& m, i64);
// Gemma 4 (gemma4_layers.cc).
void read_gemma4_experts(const ConfigFields& c, ModelConfig& m, i64);
void read_gemma4_layers(const ConfigFields& c, ModelConfig& m, i64);
// Llama-Nemotron (deci_layers.cc).
void read_deci_layers(const ConfigFields& c, ModelConfig& m, i64);

}  // namespace mckpt::impl
