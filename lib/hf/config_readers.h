// The readers of families: each puts the numbers of one kind of config.json into a ModelConfig;
// config_families.cc has the table of all. `c` is the object with the language model's entries, `top` the
// whole config of a model that also has vision.
#pragma once

namespace mckpt::impl {

class ConfigFields;
struct ModelConfig;

// Attention without biases and a gated MLP in every layer.
void read_llama(const ConfigFields& c, ModelConfig& m);
// Llama, and biases of q, k and v.
void read_qwen2(const ConfigFields& c, ModelConfig& m);
// Llama, norms of q and k, and an optional MTP depth.
void read_qwen3(const ConfigFields& c, ModelConfig& m);
// Attention with norms of q and k; some or all layers have experts, none a shared expert.
void read_qwen3_moe(const ConfigFields& c, ModelConfig& m);
// Gated delta nets between attention layers with an output gate; experts with a gated shared expert.
void read_qwen3_next(const ConfigFields& c, ModelConfig& m);
// The mixers of qwen3_next with a dense MLP in every layer.
void read_qwen3_5_text(const ConfigFields& c, ModelConfig& m);
// qwen3_5_text, and a vision tower without deepstack mergers.
void read_qwen3_5(const ConfigFields& top, ModelConfig& m);
// qwen3_next, and a vision tower without deepstack mergers.
void read_qwen3_5_moe(const ConfigFields& top, ModelConfig& m);
// A dense decoder with norms of q and k, and a vision tower with deepstack mergers.
void read_qwen3_vl(const ConfigFields& top, ModelConfig& m);
// qwen3_moe without MTP, and a vision tower with deepstack mergers.
void read_qwen3_vl_moe(const ConfigFields& top, ModelConfig& m);
// Mamba, attention, dense MLPs and experts as layers of their own, in the order of a pattern; optional MTP
// depths.
void read_nemotron_h(const ConfigFields& c, ModelConfig& m);

// config_dense.cc
// Llama, with the defaults of Mistral.
void read_mistral(const ConfigFields& c, ModelConfig& m);
// Llama, and biases of q, k and v, and perhaps of the output projection.
void read_seed_oss(const ConfigFields& c, ModelConfig& m);
// A gated GELU, norms less one, and an output layer that is tied unless the config says otherwise.
void read_gemma(const ConfigFields& c, ModelConfig& m);
void read_gemma2(const ConfigFields& c, ModelConfig& m);
// gemma2, and norms of q and k.
void read_gemma3_text(const ConfigFields& c, ModelConfig& m);
// Norms behind attention and MLP alone; of q and k by head.
void read_exaone4(const ConfigFields& c, ModelConfig& m);
// exaone4 with norms over all queries, and over all keys.
void read_olmo2(const ConfigFields& c, ModelConfig& m);
// Four norms, gate and up in one tensor, and biases of q, k and v.
void read_glm4(const ConfigFields& c, ModelConfig& m);
// LayerNorms less one, and an MLP that is not gated.
void read_nemotron(const ConfigFields& c, ModelConfig& m);

// config_deepseek.cc
// Latent attention, dense layers first, then experts beside a shared one; prediction layers.
void read_deepseek_v3(const ConfigFields& c, ModelConfig& m);
// deepseek_v3 without a bias of the router.
void read_deepseek_v2(const ConfigFields& c, ModelConfig& m);
void read_glm4_moe_lite(const ConfigFields& c, ModelConfig& m);
// deepseek_v3, and indexers in all or some layers.
void read_glm_moe_dsa(const ConfigFields& c, ModelConfig& m);
void read_deepseek_v32(const ConfigFields& c, ModelConfig& m);
// The experts of deepseek_v3 behind grouped-query attention.
void read_glm4_moe(const ConfigFields& c, ModelConfig& m);

// config_experts.cc
// Experts with the width that other configs give the dense MLP.
void read_olmoe(const ConfigFields& c, ModelConfig& m);
void read_mixtral(const ConfigFields& c, ModelConfig& m);
void read_minimax_m2(const ConfigFields& c, ModelConfig& m);
// Dense layers first, then experts beside shared ones; norms of q and k.
void read_hy_v3(const ConfigFields& c, ModelConfig& m);
void read_exaone_moe(const ConfigFields& c, ModelConfig& m);
// Experts in a range of layers.
void read_ernie4_5_moe(const ConfigFields& c, ModelConfig& m);
// qwen2 with experts and a shared one with a gate (config_qwen.cc).
void read_qwen2_moe(const ConfigFields& c, ModelConfig& m);

// config_bailing.cc
// Attention from one tensor; dense layers first, then experts beside a shared one.
void read_bailing_moe(const ConfigFields& c, ModelConfig& m);
// qwen2 with prediction layers.
void read_mimo(const ConfigFields& c, ModelConfig& m);
// Attention beside Mamba in every layer.
void read_falcon_h1(const ConfigFields& c, ModelConfig& m);

// config_multimodal.cc: language models behind a tower that Megatron takes over from Hugging Face.
void read_qwen2_5_vl(const ConfigFields& top, ModelConfig& m);
void read_qwen2_audio(const ConfigFields& top, ModelConfig& m);
void read_qwen3_omni_moe(const ConfigFields& top, ModelConfig& m);
void read_mistral3(const ConfigFields& top, ModelConfig& m);
void read_gemma3(const ConfigFields& top, ModelConfig& m);
void read_glm4v_moe(const ConfigFields& top, ModelConfig& m);
void read_minimax_m3(const ConfigFields& top, ModelConfig& m);

// config_gemma4.cc
// Heads of two sizes, shared keys and values, a dense MLP beside experts or a second embedding.
void read_gemma4_text(const ConfigFields& c, ModelConfig& m);
void read_gemma4(const ConfigFields& top, ModelConfig& m);

// The entries of any decoder under the names that most families give them: the reader of a map without a
// base. Attention or latent attention in every layer; dense MLPs, experts, or both.
void read_any(const ConfigFields& top, ModelConfig& m);

}  // namespace mckpt::impl
