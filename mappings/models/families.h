// The families, one file for each kind of model; registry.cc makes one list of them. A family is data: tables
// of rows and sections, checked by check_family(). A new family is a file, a line here and in registry.cc,
// and a reader of its config in lib/hf (docs/adding_a_model.md).
#pragma once

#include <span>

namespace mckpt::impl {

struct Family;

std::span<const Family> dense_families();
std::span<const Family> gemma_families();
std::span<const Family> post_norm_families();
std::span<const Family> nemotron_families();
std::span<const Family> qwen3_moe_families();
std::span<const Family> qwen3_vl_families();
std::span<const Family> qwen3_next_families();
std::span<const Family> qwen3_5_families();
std::span<const Family> nemotron_h_families();
std::span<const Family> deepseek_v3_families();
std::span<const Family> sparse_attention_families();
std::span<const Family> glm4_moe_families();
std::span<const Family> expert_families();
std::span<const Family> gpt_oss_families();
std::span<const Family> qwen2_5_vl_families();
std::span<const Family> qwen2_audio_families();
std::span<const Family> qwen3_omni_moe_families();
std::span<const Family> mistral3_families();
std::span<const Family> bailing_moe_families();
std::span<const Family> mimo_families();
std::span<const Family> falcon_h1_families();
std::span<const Family> minimax_m3_families();
std::span<const Family> gemma3_vl_families();
std::span<const Family> gemma4_families();
std::span<const Family> glm4v_moe_families();

}  // namespace mckpt::impl
