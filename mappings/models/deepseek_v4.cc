// DeepSeek-V4 (Flash, Pro): experts in every layer, attention over a window and over compressed keys, and
// hyper connections that mix several residual streams. Releases have FP8 and packed FP4.
//
//   layers.2.attn.wkv, attn.wo_a                decoder.layers.2.self_attention.linear_kv_proj, linear_o_group_proj
//   layers.2.attn.compressor, attn.indexer      decoder.layers.2.self_attention.core_attention.compressor, indexer
//   layers.2.hc_attn_scale [3]                  decoder.layers.2.self_attention_hyper_connection.alpha_pre, alpha_post, alpha_res
//   layers.0.ffn.gate.tid2eid                   decoder.layers.0.mlp.router.tid2eid      which experts each token goes to
//
// Peculiar to this family:
// - Megatron's attention has one tensor-parallel rank. No released Megatron-Core has the modules: its
// development branch gives
//   names, sizes and order, the mappings of Megatron-Bridge 0.6.2 give the sources.
// - Names have no prefix; files of transformers 5 have "model.", and other words for four of them.
// - Sinks, positions of compressors and hyper connections stay fp32 at run time.
#include "mappings/models/config_blocks.h"
#include "mappings/models/deepseek.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

// fp32 in every run.
constexpr Row kept(std::string_view name, std::string_view source, std::string_view shape,
                   std::string_view also = {}) {
  return {.megatron = name, .rule = "replicate", .sources = {{{source, shape}}}, .fp32 = true, .also = also};
}
constexpr Row whole(std::string_view name, std::string_view source, std::string_view shape) {
  return {.megatron = name, .rule = "replicate", .sources = {{{source, shape}}}};
}
constexpr Row alpha(std::string_view name, std::string_view source, i64 item) {
  return {
      .megatron = name, .rule = "replicate_slice", .sources = {{{source, "3"}}}, .fp32 = true, .slice = item};
}

constexpr Row kEmbedding[] = {
    {.megatron = "embedding.word_embeddings.weight",
     .rule = "vocab",
     .sources = {{{"embed.weight", "vocab hidden"}}},
     .also = "embed_tokens.weight"},
};
constexpr Row kHead[] = {
    kept("hc_head_fn", "hc_head_fn", "streams streams*hidden", "hc_head.hc_fn"),
    kept("hc_head_base", "hc_head_base", "streams", "hc_head.hc_base"),
    kept("hc_head_scale", "hc_head_scale", "1", "hc_head.hc_scale"),
};
constexpr Row kOutput[] = {
    {.megatron = "output_layer.weight",
     .rule = "vocab",
     .sources = {{{"head.weight", "vocab hidden"}}},
     .needs = Needs::kUntied,
     .also = "lm_head.weight"},
};
constexpr Row kTied[] = {
    {.megatron = "output_layer.weight",
     .rule = "vocab",
     .sources = {{{"embed.weight", "vocab hidden"}}},
     .needs = Needs::kTied,
     .also = "embed_tokens.weight"},
};

constexpr Row kInputNorm = whole("input_layernorm.weight", "attn_norm.weight", "hidden");
constexpr Row kGroups =
    whole("self_attention.linear_o_group_proj", "attn.wo_a.weight", "out_groups*out_lora group_width");
constexpr Row kSink = {.megatron = "self_attention.core_attention.attn_sink",
                       .rule = "column",
                       .sources = {{{"attn.attn_sink", "heads"}}},
                       .fp32 = true};
constexpr Row kProj = {
    "self_attention.linear_proj.weight", "row", {{{"attn.wo_b.weight", "hidden out_groups*out_lora"}}}};
constexpr Row kQueryDown =
    whole("self_attention.linear_q_down_proj.weight", "attn.wq_a.weight", "q_lora hidden");
constexpr Row kQueryUp = {
    "self_attention.linear_q_up_proj.weight", "column", {{{"attn.wq_b.weight", "heads*head_dim q_lora"}}}};
constexpr Row kKeys = {
    "self_attention.linear_kv_proj.weight", "column", {{{"attn.wkv.weight", "head_dim hidden"}}}};
constexpr Row kKeyNorm = {.megatron = "self_attention.kv_layernorm.weight",
                          .rule = "replicate",
                          .sources = {{{"attn.kv_norm.weight", "head_dim"}}},
                          .also = "attn.norm.weight"};
constexpr Row kQueryNorm = whole("self_attention.q_layernorm.weight", "attn.q_norm.weight", "q_lora");

constexpr Row kWindow[] = {
    kInputNorm, kGroups, kSink, kProj, kQueryDown, kQueryUp, kKeys, kKeyNorm, kQueryNorm,
};
constexpr Row kCompressed[] = {
    kInputNorm,
    kGroups,
    kSink,
    kept("self_attention.core_attention.compressor.ape", "attn.compressor.ape", "far_rate head_dim"),
    whole("self_attention.core_attention.compressor.linear_wkv.weight", "attn.compressor.wkv.weight",
          "head_dim hidden"),
    whole("self_attention.core_attention.compressor.linear_wgate.weight", "attn.compressor.wgate.weight",
          "head_dim hidden"),
    whole("self_attention.core_attention.compressor.norm.weight", "attn.compressor.norm.weight", "head_dim"),
    kProj,
    kQueryDown,
    kQueryUp,
    kKeys,
    kKeyNorm,
    kQueryNorm,
};
// Four keys become one, and windows of them overlap: twice the rows.
constexpr Row kIndexed[] = {
    kInputNorm,
    kGroups,
    kSink,
    kept("self_attention.core_attention.compressor.ape", "attn.compressor.ape", "4 2*head_dim"),
    whole("self_attention.core_attention.compressor.linear_wkv.weight", "attn.compressor.wkv.weight",
          "2*head_dim hidden"),
    whole("self_attention.core_attention.compressor.linear_wgate.weight", "attn.compressor.wgate.weight",
          "2*head_dim hidden"),
    whole("self_attention.core_attention.compressor.norm.weight", "attn.compressor.norm.weight", "head_dim"),
    whole("self_attention.core_attention.indexer.linear_wq_b.weight", "attn.indexer.wq_b.weight",
          "indexer_q q_lora"),
    {.megatron = "self_attention.core_attention.indexer.linear_weights_proj.weight",
     .rule = "replicate",
     .sources = {{{"attn.indexer.weights_proj.weight", "indexer_heads hidden"}}},
     .also = "attn.indexer.scorer.weights_proj.weight"},
    kept("self_attention.core_attention.indexer.compressor.ape", "attn.indexer.compressor.ape",
         "4 2*indexer_dim"),
    whole("self_attention.core_attention.indexer.compressor.linear_wkv.weight",
          "attn.indexer.compressor.wkv.weight", "2*indexer_dim hidden"),
    whole("self_attention.core_attention.indexer.compressor.linear_wgate.weight",
          "attn.indexer.compressor.wgate.weight", "2*indexer_dim hidden"),
    whole("self_attention.core_attention.indexer.compressor.norm.weight",
          "attn.indexer.compressor.norm.weight", "indexer_dim"),
    kProj,
    kQueryDown,
    kQueryUp,
    kKeys,
    kKeyNorm,
    kQueryNorm,
};

constexpr Row kMoe[] = {
    whole("pre_mlp_layernorm.weight", "ffn_norm.weight", "hidden"),
    whole("mlp.router.weight", "ffn.gate.weight", "experts hidden"),
    expert_bias_row("ffn.gate.bias"),
    {.megatron = "mlp.router.tid2eid",
     .rule = "replicate",
     .sources = {{{"ffn.gate.tid2eid", "vocab routed"}}},
     .needs = Needs::kHashRouting,
     .buffer = true,
     .counter = true},
    {"mlp.experts.linear_fc1.weight{E}",
     "gated_mlp",
     {{{"ffn.experts.{E}.w1.weight", "expert_ffn hidden"},
       {"ffn.experts.{E}.w3.weight", "expert_ffn hidden"}}},
     Needs::kExpertsApart,
     KeySplit::kSwiglu},
    {"mlp.experts.linear_fc2.weight{E}",
     "row",
     {{{"ffn.experts.{E}.w2.weight", "hidden expert_ffn"}}},
     Needs::kExpertsApart},
    {"mlp.shared_experts.linear_fc1.weight",
     "gated_mlp",
     {{{"ffn.shared_experts.w1.weight", "shared_ffn hidden"},
       {"ffn.shared_experts.w3.weight", "shared_ffn hidden"}}},
     Needs::kSharedExpert,
     KeySplit::kSwiglu},
    {"mlp.shared_experts.linear_fc2.weight",
     "row",
     {{{"ffn.shared_experts.w2.weight", "hidden shared_ffn"}}},
     Needs::kSharedExpert},
    alpha("self_attention_hyper_connection.alpha_pre", "hc_attn_scale", 0),
    alpha("self_attention_hyper_connection.alpha_post", "hc_attn_scale", 1),
    alpha("self_attention_hyper_connection.alpha_res", "hc_attn_scale", 2),
    kept("self_attention_hyper_connection.bias", "hc_attn_base", "mixes"),
    kept("self_attention_hyper_connection.mapping_proj.weight", "hc_attn_fn", "mixes streams*hidden"),
    alpha("mlp_hyper_connection.alpha_pre", "hc_ffn_scale", 0),
    alpha("mlp_hyper_connection.alpha_post", "hc_ffn_scale", 1),
    alpha("mlp_hyper_connection.alpha_res", "hc_ffn_scale", 2),
    kept("mlp_hyper_connection.bias", "hc_ffn_base", "mixes"),
    kept("mlp_hyper_connection.mapping_proj.weight", "hc_ffn_fn", "mixes streams*hidden"),
};

constexpr Row kMtpHead[] = {
    kHead[0],
    kHead[1],
    kHead[2],
    whole("enorm.weight", "enorm.weight", "hidden"),
    whole("hnorm.weight", "hnorm.weight", "hidden"),
    {"e_proj.weight", "column", {{{"e_proj.weight", "hidden hidden"}}}},
    {"h_proj.weight", "column", {{{"h_proj.weight", "hidden hidden"}}}},
};
constexpr Row kMtpTail[] = {
    whole("final_layernorm.weight", "norm.weight", "hidden"),
};

constexpr LayerRows kLayer = {
    .attention = kWindow, .sparse_attention = kCompressed, .indexed_attention = kIndexed, .moe = kMoe};
constexpr std::string_view kAlso = "model.", kLayers = "layers.{L}.", kAlsoLayers = "model.layers.{L}.";
constexpr std::string_view kMtp = "mtp.layers.{M}.", kNext = "mtp.{M}.";

constexpr Section kSections[] = {
    {Scope::kOnce, "", "", kEmbedding, nullptr, Stage::kFirstAndMtp, Tower::kText, true, kAlso},
    {Scope::kOnce, "decoder.", "", kHead, nullptr, Stage::kFinalNorm, Tower::kText, true, kAlso},
    {Scope::kLayers,
     "decoder.layers.{L}.",
     kLayers,
     {},
     &kLayer,
     Stage::kFirst,
     Tower::kText,
     true,
     kAlsoLayers},
    {Scope::kOnce, "", "", kFinalNormRows, nullptr, Stage::kFinalNorm, Tower::kText, true, kAlso},
    {Scope::kMtpHead, kMtp, kNext, kMtpHead, nullptr, Stage::kMtp},
    {Scope::kMtpLayers, "mtp.layers.{M}.mtp_model_layer.", kNext, {}, &kLayer, Stage::kMtp},
    {Scope::kMtpTail, kMtp, kNext, kMtpTail, nullptr, Stage::kMtp},
    {Scope::kOnce, "", "", kOutput, nullptr, Stage::kOutput},
    {Scope::kOnce, "", "", kTied, nullptr, Stage::kTiedOutput, Tower::kText, true, kAlso},
};

// A layer for prediction of the file repeats the embedding and the output layer.
constexpr Unread kUnread[] = {
    {"head.weight", "embed.weight", kTiedCopy, Needs::kTied},
    {"mtp.{M}.emb.tok_emb.weight", "embed.weight", kMtpCopy},
    {"mtp.{M}.head.weight", "head.weight", kMtpCopy, Needs::kUntied},
};

constexpr std::string_view kTypes[] = {"deepseek_v4"};
constexpr Needs kForms[] = {Needs::kExpertsApart};
constexpr Needs kHas[] = {Needs::kExpertBias, Needs::kSharedExpert, Needs::kHashRouting};

constexpr ConfigStep kConfig[] = {
    text({.kv_groups = 1, .head_dim = 512}),
    activation(),
    refused("attention_bias"),
    refused("mlp_bias"),
    size_or(member<&ModelConfig::mla, &MlaConfig::q_lora>, "q_lora_rank", 1024),
    size_or(member<&ModelConfig::compressed, &CompressedConfig::out_groups>, "o_groups", 8),
    size_or(member<&ModelConfig::compressed, &CompressedConfig::out_lora>, "o_lora_rank", 1024),
    size_or(member<&ModelConfig::compressed, &CompressedConfig::streams>, "hc_mult", 4),
    size_or(member<&ModelConfig::compressed, &CompressedConfig::routed>, "num_experts_per_tok", 6),
    size_or(member<&ModelConfig::indexer, &IndexerConfig::heads>, "index_n_heads", 64),
    size_or(member<&ModelConfig::indexer, &IndexerConfig::head_dim>, "index_head_dim", 128),
    experts("n_routed_experts", "num_local_experts"),
    size(kMoeFfn, "moe_intermediate_size"),
    same(kSharedFfn, kMoeFfn),  // one shared expert, whatever n_shared_experts says
    set(kExpertBias, true),
    set(member<&ModelConfig::one_tensor_rank>, true),
    set(kLayersApart, true),
    part("deepseek_v4_layers"),
    layer_experts(),
};

constexpr Family kFamilies[] = {
    {.name = "deepseek_v4",
     .model_types = kTypes,
     .architecture = "DeepseekV4ForCausalLM",
     .summary = "DeepSeek-V4",
     .sections = kSections,
     .unread = kUnread,
     .expert_forms = kForms,
     .conditions = kHas,
     .vocab_divisor = 1280,
     .config = kConfig,
     .facts = {"deepseek-ai/DeepSeek-V4-Flash, deepseek-ai/DeepSeek-V4-Pro", "fp8 blocks, fp4", ""}},
};

}  // namespace

std::span<const Family> deepseek_v4_families() { return kFamilies; }

}  // namespace mckpt::impl
