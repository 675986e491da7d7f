// The registry of families: the one list of their tables, in the order in which `mckpt mappings list` prints
// them. NAME is the function NAME_families() of a file in this folder. A family is data: rows, sections, the
// steps that read its config.json and what people want to know of it; check_family() checks them. A new
// family is a file and a word here (docs/adding_a_model.md).
#pragma once

#include <span>

namespace mckpt::impl {

struct Family;

#define MCKPT_FAMILY_TABLES(NAME) \
  NAME(dense) \
  NAME(gemma) \
  NAME(post_norm) \
  NAME(nemotron) \
  NAME(qwen3_moe) \
  NAME(qwen3_next) \
  NAME(qwen3_5) \
  NAME(qwen3_vl) \
  NAME(nemotron_h) \
  NAME(deepseek_v3) \
  NAME(sparse_attention) \
  NAME(glm4_moe) \
  NAME(expert) \
  NAME(gpt_oss) \
  NAME(qwen2_5_vl) \
  NAME(qwen2_audio) \
  NAME(qwen3_omni_moe) \
  NAME(mistral3) \
  NAME(bailing_moe) \
  NAME(mimo) \
  NAME(falcon_h1) \
  NAME(minimax_m3) \
  NAME(gemma3_vl) \
  NAME(gemma4) \
  NAME(glm4v_moe) \
  NAME(llama_nemotron) \
  NAME(qwen3_asr) \
  NAME(qwen2_5_omni) \
  NAME(exaone4_5) \
  NAME(nemotron_vl) \
  NAME(ernie4_5_vl_moe) \
  NAME(kimi_k25) \
  NAME(step) \
  NAME(mimo_v2_flash) \
  NAME(deepseek_v4) \
  NAME(internvl) \
  NAME(llama4) \
  NAME(muse_glimmer) \
  NAME(qwen4_exp)

#define MCKPT_DECLARE_FAMILIES(name) std::span<const Family> name##_families();
MCKPT_FAMILY_TABLES(MCKPT_DECLARE_FAMILIES)
#undef MCKPT_DECLARE_FAMILIES

}  // namespace mckpt::impl
