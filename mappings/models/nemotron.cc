// Nemotron, dense (Minitron): Llama with LayerNorms, which have biases and are stored less one, in the file
// as in Megatron, and an MLP that is not gated.
#include "mappings/models/blocks.h"
#include "mappings/models/config_blocks.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr Row kAttention[] = {
    kLinearProj,
    kFusedInputNorm,
    {"self_attention.linear_qkv.layer_norm_bias", "replicate", {{{"input_layernorm.bias", "hidden"}}}},
    kQkv,
};
constexpr Row kDense[] = {
    {"mlp.linear_fc1.layer_norm_weight", "replicate", {{{"post_attention_layernorm.weight", "hidden"}}}},
    {"mlp.linear_fc1.layer_norm_bias", "replicate", {{{"post_attention_layernorm.bias", "hidden"}}}},
    {"mlp.linear_fc1.weight", "column", {{{"mlp.up_proj.weight", "ffn hidden"}}}},
    kFc2,
};
constexpr Row kFinalNorm[] = {
    {"decoder.final_layernorm.weight", "replicate", {{{"norm.weight", "hidden"}}}},
    {"decoder.final_layernorm.bias", "replicate", {{{"norm.bias", "hidden"}}}},
};

constexpr LayerRows kLayer = {.attention = kAttention, .dense = kDense};

constexpr Section kSections[] = {
    {Scope::kOnce, "", "model.", kEmbeddingRows},
    {Scope::kLayers, "decoder.layers.{L}.", "model.layers.{L}.", {}, &kLayer},
    {Scope::kOnce, "", "model.", kFinalNorm, nullptr, Stage::kFinalNorm},
    {Scope::kOnce, "", "", kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, "", "model.", kTiedOutputRows, nullptr, Stage::kTiedOutput},
};

constexpr Unread kUnread[] = {
    {"lm_head.weight", "model.embed_tokens.weight", kTiedCopy, Needs::kTied},
    {"model.layers.{L}.self_attn.rotary_emb.inv_freq", "", kRotary},
};

constexpr std::string_view kTypes[] = {"nemotron"};

constexpr ConfigStep kConfig[] = {
    all_of(kLlamaConfig),   set(kGatedMlp, false),    set(kSwiglu, false),
    set(kLayerNorms, true), set(kZeroCentered, true),
};

constexpr Family kFamilies[] = {
    {.name = "nemotron",
     .model_types = kTypes,
     .architecture = "NemotronForCausalLM",
     .summary = "Nemotron-4 and Minitron, dense",
     .sections = kSections,
     .unread = kUnread,
     .config = kConfig,
     .facts = {"nvidia/Minitron-4B-Base", "", "1, tp2, tp2 cp2"}},
};

}  // namespace

std::span<const Family> nemotron_families() { return kFamilies; }

}  // namespace mckpt::impl
