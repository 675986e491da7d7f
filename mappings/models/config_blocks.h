// Steps of config.json that families share (mappings/config_steps.h); their tables name these lists, as they
// name the shared rows of blocks.h.
#pragma once

#include "mappings/config_words.h"

namespace mckpt::impl {
namespace config_blocks {

using namespace config_steps;

inline constexpr LayerSpec kAttentionAndExperts = {Mixer::kAttention, Ffn::kMoe};

// An activation other than SiLU is allowed: the tensors are the same, but fsdp_dtensor then stores the gated
// MLP whole.
inline constexpr ConfigStep kDenseFfn[] = {size(kFfn, "intermediate_size"), activation()};
// A decoder of attention without biases and a gated MLP in every layer, behind text().
inline constexpr ConfigStep kPlainDecoder[] = {all_of(kDenseFfn), refused("attention_bias"),
                                               refused("mlp_bias"), layers()};
inline constexpr ConfigStep kLlamaConfig[] = {text(), all_of(kPlainDecoder)};
inline constexpr ConfigStep kQwen2Config[] = {text({.kv_groups = 32, .null_groups_are_heads = true}),
                                              all_of(kPlainDecoder), set(kQkvBias, true)};

// Routed experts, and the layers that have them.
inline constexpr ConfigStep kRoutedExperts[] = {
    experts("num_experts", "num_local_experts"),
    size(kMoeFfn, "moe_intermediate_size"),
    activation(),
};
inline constexpr ConfigStep kQwenExperts[] = {all_of(kRoutedExperts), part("sparse_layers"), layer_experts()};
// A shared expert with a gate, behind its width.
constexpr ConfigStep shared_width(i64 otherwise) {
  return count_or(kSharedFfn, "shared_expert_intermediate_size", otherwise);
}
// Attention with norms of q and k, and experts, behind text(). These families have no shared experts,
// whatever the config says.
inline constexpr ConfigStep kSparseDecoder[] = {
    refused("attention_bias"), set(kQkNorm, true),   layers(),
    all_of(kQwenExperts),      fixed(kSharedFfn, 0), set(kSharedGate, false),
};
inline constexpr ConfigStep kQwen3MoeConfig[] = {text({.kv_groups = 4}), all_of(kSparseDecoder),
                                                 mtp(1, kAttentionAndExperts)};

// Gated delta nets between attention layers with an output gate, behind text(), with the defaults of
// transformers.
inline constexpr NumberOf kGdnKeyHeads = member<&ModelConfig::gdn, &GdnConfig::key_heads>;
inline constexpr NumberOf kGdnValueHeads = member<&ModelConfig::gdn, &GdnConfig::value_heads>;
inline constexpr ConfigStep kGatedSizes[] = {
    refused("attention_bias"),
    set(kQkNorm, true),
    set(kOutputGate, true),
    size_or(kGdnKeyHeads, "linear_num_key_heads", 16),
    size_or(kGdnValueHeads, "linear_num_value_heads", 32),
    size_or(member<&ModelConfig::gdn, &GdnConfig::key_dim>, "linear_key_head_dim", 128),
    size_or(member<&ModelConfig::gdn, &GdnConfig::value_dim>, "linear_value_head_dim", 128),
    size_or(member<&ModelConfig::gdn, &GdnConfig::conv_kernel>, "linear_conv_kernel_dim", 4),
    divides("linear_num_value_heads", kGdnValueHeads, "linear_num_key_heads", kGdnKeyHeads),
};
inline constexpr ConfigStep kGatedDecoder[] = {all_of(kGatedSizes), refused("mtp_use_dedicated_embeddings"),
                                               part("gdn_layers")};
inline constexpr ConfigStep kGatedLayers[] = {text({.kv_groups = 2, .head_dim = 256}), all_of(kGatedDecoder),
                                              shared_width(512), part("shared_gate")};
inline constexpr ConfigStep kQwen3NextConfig[] = {all_of(kGatedLayers), all_of(kQwenExperts),
                                                  mtp(1, kAttentionAndExperts)};
// The same, and every layer has experts.
inline constexpr ConfigStep kQwen35MoeConfig[] = {all_of(kGatedLayers), all_of(kRoutedExperts),
                                                  part("experts_everywhere"), layer_experts(),
                                                  mtp(1, kAttentionAndExperts)};

// Configs that transformers wrote may also have num_experts, which is then another model's number.
inline constexpr ConfigStep kDeepseekExperts[] = {
    experts("n_routed_experts", "num_local_experts"),
    size(kMoeFfn, "moe_intermediate_size"),
    shared_experts("n_shared_experts", 1),
    set(kExpertBias, true),
};
// The rank of queries; models without low-rank queries say null.
constexpr ConfigStep query_rank(i64 otherwise) {
  return count_unless_null(member<&ModelConfig::mla, &MlaConfig::q_lora>, "q_lora_rank", otherwise);
}
// Latent attention beside a dense MLP, behind the rank of queries: all but experts and layers.
inline constexpr ConfigStep kLatentSizes[] = {
    size(kVocab, "vocab_size"),
    size(kHidden, "hidden_size"),
    size(kHeads, "num_attention_heads"),
    same(kKvGroups, kHeads),
    refused("attention_bias"),
    all_of(kDenseFfn),
    size(member<&ModelConfig::mla, &MlaConfig::kv_lora>, "kv_lora_rank"),
    size(member<&ModelConfig::mla, &MlaConfig::nope>, "qk_nope_head_dim"),
    size(member<&ModelConfig::mla, &MlaConfig::rope>, "qk_rope_head_dim"),
    size(member<&ModelConfig::mla, &MlaConfig::v_dim>, "v_head_dim"),
    part("latent_head_dim"),
};
inline constexpr ConfigStep kLatentDecoder[] = {all_of(kLatentSizes), all_of(kDeepseekExperts)};
inline constexpr ConfigStep kGlm4MoeConfig[] = {
    text({.kv_groups = 8}),
    all_of(kDenseFfn),
    flag(kQkvBias, "attention_bias", false),
    flag(kQkNorm, "use_qk_norm", false),
    all_of(kDeepseekExperts),
    layers(),
    dense_layers(1),
    layer_experts(),
    mtp(16, kAttentionAndExperts),
};

// Gemma's activation is GELU under all of its names, and transformers ties the output layer by default.
inline constexpr ConfigStep kGemmaDecoder[] = {all_of(kPlainDecoder), set(kSwiglu, false),
                                               set(kZeroCentered, true),
                                               flag(kTiedHead, "tie_word_embeddings", true)};
inline constexpr ConfigStep kGemma2Config[] = {text({.kv_groups = 4, .head_dim = 256}),
                                               all_of(kGemmaDecoder)};
inline constexpr ConfigStep kGemma3TextConfig[] = {all_of(kGemma2Config), set(kQkNorm, true)};

}  // namespace config_blocks
}  // namespace mckpt::impl
