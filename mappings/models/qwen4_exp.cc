// Qwen4-Exp (Qwen3.8-Flash-Next): residual streams that gated hyper connections mix, gated delta nets between
// attention with an indexer, experts in every layer, and in some layers tables of n-grams, behind a tower
// that mcore-bridge (ms-swift) takes over from Hugging Face; Megatron-Bridge has no such model.
//
//   model.language_model.                   language_model.decoder.
//     layers.0.linear_attn.in_proj_qkv,       layers.0.self_attention.in_proj_qkvz
//       in_proj_z
//     layers.0.ple.ple_embedding.             layers.0.ple.ple_embedding.ngram_embedding.weight
//       ngram_embedding.shard_0.weight ...
//     hyper_connection_mixer                  hyper_connection_mixer
//
// Peculiar to this family:
// - Norms of the hyper connections are in the place of the layers' norms and of the last one.
// - A table of n-grams is split over tensor-parallel ranks as one, whatever parts the file has it in. How
// many
//   rows it has follows from prime numbers (hf/config/ngram_layers.cc).
// - Attention keeps each query head and its gate beside each other, as the file has them; Megatron's own
// parts
//   them.
// - Norms of gated delta nets are copied as they are; rows of their projections are grouped by key head.
// - Layers for prediction join embedding and streams by two projections, and mix the streams at the end.
#include "mappings/models/blocks.h"
#include "mappings/models/config_blocks.h"
#include "mappings/models/families.h"
#include "mappings/models/gdn.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

// A buffer of integers that hashes n-grams.
constexpr Row hash_numbers(std::string_view name, std::string_view shape) {
  return {.megatron = name,
          .rule = "replicate",
          .sources = {{{name, shape}}},
          .needs = Needs::kNGrams,
          .buffer = true,
          .counter = true};
}

// A norm of queries, keys or streams.
constexpr Row plain_norm(std::string_view name, std::string_view file, std::string_view shape) {
  return stateless({name, "replicate", {{{file, shape}}}});
}

constexpr Row kGdn[] = {
    kGdnTimeStep,
    kGdnDecay,
    {.megatron = "self_attention.conv1d.weight",
     .rule = "gdn_conv_by_head",
     .sources = {{{"linear_attn.conv1d.weight", "gdn_qkv 1 gdn_kernel"}}},
     .gathered_with = kOwnLayer},
    {"self_attention.out_norm.weight", "replicate", {{{"linear_attn.norm.weight", "gdn_value_dim"}}}},
    kGdnOut,
    {"self_attention.in_proj_qkvz.weight",
     "gdn_qkvz",
     {{{"linear_attn.in_proj_qkv.weight", "gdn_qkv hidden"},
       {"linear_attn.in_proj_z.weight", "gdn_v hidden"}}}},
    {"self_attention.in_proj_ba.weight",
     "gdn_ba",
     {{{"linear_attn.in_proj_b.weight", "gdn_heads hidden"},
       {"linear_attn.in_proj_a.weight", "gdn_heads hidden"}}}},
};
constexpr Row kAttention[] = {
    kLinearProj,
    {"self_attention.linear_qkv.weight",
     "qkv_gates_by_head",
     {{{"self_attn.q_proj.weight", "q hidden"},
       {"self_attn.k_proj.weight", "kv hidden"},
       {"self_attn.v_proj.weight", "kv hidden"}}}},
    plain_norm("self_attention.q_layernorm.weight", "self_attn.q_norm.weight", "head_dim"),
    plain_norm("self_attention.k_layernorm.weight", "self_attn.k_norm.weight", "head_dim"),
    {"self_attention.indexer.index_qk_proj.weight",
     "replicate",
     {{{"self_attn.indexer.index_qk_proj.weight", "indexer_qk hidden"}}}},
    plain_norm("self_attention.indexer.q_layernorm.weight", "self_attn.indexer.q_layernorm.weight",
               "indexer_dim"),
    plain_norm("self_attention.indexer.k_layernorm.weight", "self_attn.indexer.k_layernorm.weight",
               "indexer_dim"),
};

constexpr Row kMoe[] = {
    kQwenRouter,
    kQwenFc1Apart,
    kQwenFc1Fused,
    kQwenFc2Apart,
    kQwenFc2Fused,
    kQwenSharedGate,
    kQwenSharedFc1,
    kQwenSharedFc2,
    hash_numbers("ple.ple_embedding.layer_multipliers", "ngram_size"),
    hash_numbers("ple.ple_embedding.ngram_heads_vocab_sizes", "ngram_heads"),
    hash_numbers("ple.ple_embedding.ngram_heads_offsets", "ngram_heads"),
    stateless({"ple.ple_embedding.ngram_embedding.weight",
               "column_joined",
               {{{"ple.ple_embedding.ngram_embedding.shard_{P}.weight", "ngram_part ngram_width"}}},
               Needs::kNGrams}),
    copied("ple.key_proj.weight", "streams*hidden ngram_heads*ngram_width", Needs::kNGrams),
    copied("ple.value_proj.weight", "hidden ngram_heads*ngram_width", Needs::kNGrams),
    stateless(copied("ple.norm_key.weight", "streams*hidden", Needs::kNGrams)),
    stateless(copied("ple.norm_query.weight", "streams*hidden", Needs::kNGrams)),
    stateless(copied("ple.norm_conv.weight", "streams*hidden", Needs::kNGrams)),
    {.megatron = "ple.conv1d.weight",
     .rule = "replicate",
     .sources = {{{"ple.conv1d.weight", "streams*hidden 1 ngram_kernel"}}},
     .needs = Needs::kNGrams,
     .gathered_with = kOwnLayer},
    stateless(copied("attn_hyper_connection.hc_norm.weight", "streams*hidden")),
    copied("attn_hyper_connection.input_mix_weight_down.weight", "mix_rank streams*hidden"),
    copied("attn_hyper_connection.input_mix_weight_up.weight", "streams*hidden mix_rank"),
    copied("attn_hyper_connection.block_inject_weight.weight", "streams streams*hidden"),
    stateless(copied("mlp_hyper_connection.hc_norm.weight", "streams*hidden")),
    copied("mlp_hyper_connection.input_mix_weight_down.weight", "mix_rank streams*hidden"),
    copied("mlp_hyper_connection.input_mix_weight_up.weight", "streams*hidden mix_rank"),
    copied("mlp_hyper_connection.block_inject_weight.weight", "streams streams*hidden"),
};

constexpr Row kMixer[] = {
    stateless(copied("hyper_connection_mixer.hc_norm.weight", "streams*hidden")),
    copied("hyper_connection_mixer.input_mix_weight_down.weight", "mix_rank streams*hidden"),
    copied("hyper_connection_mixer.input_mix_weight_up.weight", "streams*hidden mix_rank"),
};

constexpr Row kMtpHead[] = {
    {"enorm.weight", "replicate", {{{"pre_fc_norm_embedding.weight", "hidden"}}}},
    plain_norm("hnorm.weight", "pre_fc_norm_hidden.weight", "streams*hidden"),
    {"e_proj.weight", "column", {{{"fc_embedding.weight", "hidden hidden"}}}},
    {"h_proj.weight", "column", {{{"fc_hidden.weight", "hidden hidden"}}}},
};

constexpr Row kMerger[] = {
    copied("merger.norm.weight", "hidden"),
    copied("merger.norm.bias", "hidden"),
    copied("merger.linear_fc1.weight", "merged merged"),
    copied("merger.linear_fc1.bias", "merged"),
    copied("merger.linear_fc2.weight", "out_hidden merged"),
    copied("merger.linear_fc2.bias", "out_hidden"),
};

constexpr LayerRows kLayer = {.sparse_attention = kAttention, .gdn = kGdn, .moe = kMoe};
constexpr std::string_view kLanguage = "language_model.", kText = "model.language_model.";
constexpr std::string_view kLayers = "language_model.decoder.layers.{L}.";
constexpr std::string_view kTextLayers = "model.language_model.layers.{L}.";
constexpr std::string_view kMtp = "language_model.mtp.layers.{M}.";
constexpr std::string_view kMtpLayer = "language_model.mtp.layers.{M}.mtp_model_layer.";
constexpr std::string_view kVisual = "visual.visual.", kTower = "model.visual.";
constexpr std::string_view kBlocks = "visual.visual.blocks.{L}.", kTowerBlocks = "model.visual.blocks.{L}.";

constexpr Section kSections[] = {
    {Scope::kOnce, kLanguage, kText, kEmbeddingRows, nullptr, Stage::kFirstAndMtp},
    {Scope::kLayers, kLayers, kTextLayers, {}, &kLayer},
    {Scope::kOnce, "language_model.decoder.", kText, kMixer, nullptr, Stage::kFinalNorm},
    {Scope::kMtpHead, kMtp, "mtp.", kMtpHead, nullptr, Stage::kMtp},
    {Scope::kMtpLayers, kMtpLayer, "mtp.layers.{M}.", {}, &kLayer, Stage::kMtp},
    {Scope::kMtpTail, kMtp, "mtp.", kMixer, nullptr, Stage::kMtp},
    {Scope::kOnce, kLanguage, "", kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, kLanguage, kText, kTiedOutputRows, nullptr, Stage::kTiedOutput},
    {Scope::kOnce, kVisual, kTower, kVisionFrontRows, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kLayers, kBlocks, kTowerBlocks, {}, &kCopiedVisionLayer, Stage::kFirst, Tower::kVision, false},
    {Scope::kOnce, kVisual, kTower, kMerger, nullptr, Stage::kFirst, Tower::kVision},
};

constexpr Unread kUnread[] = {
    {"lm_head.weight", "model.language_model.embed_tokens.weight", kTiedCopy, Needs::kTied},
};

constexpr std::string_view kTypes[] = {"qwen4_exp"};
constexpr Needs kForms[] = {Needs::kExpertsFused, Needs::kExpertsApart};
constexpr Needs kHas[] = {Needs::kSharedExpert, Needs::kSharedGate, Needs::kNGrams};

// With the defaults of transformers' class of its text.
constexpr ConfigStep kTextConfig[] = {
    text({.kv_groups = 2, .head_dim = 256}),
    all_of(kGatedSizes),
    set(kZeroCentered, true),
    set(kLayersApart, true),
    size(member<&ModelConfig::indexer, &IndexerConfig::heads>, "indexer_n_heads"),
    size(member<&ModelConfig::indexer, &IndexerConfig::head_dim>, "indexer_head_dim"),
    size_or(member<&ModelConfig::compressed, &CompressedConfig::streams>, "hc_count", 4),
    size_or(member<&ModelConfig::compressed, &CompressedConfig::mix_rank>, "hc_lowrank", 320),
    experts("num_experts", "num_local_experts"),
    size(kMoeFfn, "moe_intermediate_size"),
    size_or(kSharedFfn, "shared_expert_intermediate_size", 512),
    set(kSharedGate, true),
    activation(),
    part("qwen4_layers"),
    layer_experts(),
    mtp(1, {Mixer::kSparseAttention, Ffn::kMoe}),
};
constexpr ConfigStep kConfig[] = {
    inside("text_config", kTextConfig),
    flag(kTiedHead, "tie_word_embeddings", false),
    part("qwen_vision"),
};

constexpr Family kFamilies[] = {
    {.name = "qwen4_exp",
     .model_types = kTypes,
     .architecture = "Qwen4ExpForConditionalGeneration",
     .summary = "Qwen4-Exp, with vision",
     .sections = kSections,
     .unread = kUnread,
     .expert_forms = kForms,
     .conditions = kHas,
     .config = kConfig,
     .facts = {"Qwen/Qwen3.8-Flash-Next", "fp8 tables",
               "1, pp2, pp2 ep2, tp2, tp2 ep2, tp2 ep2 etp2, tp2 pp2 ep4, tp4"}},
};

}  // namespace

std::span<const Family> qwen4_exp_families() { return kFamilies; }

}  // namespace mckpt::impl
