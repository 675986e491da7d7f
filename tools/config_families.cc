#include "tools/config_families.h"

#include <algorithm>

namespace mckpt {
namespace {

// Names are made for every layer and every expert, so their numbers have limits of their own.
constexpr i64 kMostLayers = 10'000, kMostExperts = 100'000, kMostLayerExperts = 2'000'000;

i64 layer_count(const ConfigFields& c, std::string_view key) {
  i64 n = c.size(key);
  if (n > kMostLayers) throw c.error(key, "is out of range").expected(cat("at most ", kMostLayers)).found(n);
  return n;
}

void refuse_flag(const ConfigFields& c, std::string_view key) {
  if (c.flag_or(key, false))
    throw c.unsupported(key, "is true; the Megatron model of this family has no such biases");
}

void must_divide(const ConfigFields& c, std::string_view whole, i64 n, std::string_view part, i64 by) {
  if (n % by != 0)
    throw c.error(part, cat("does not divide '", c.key(whole), "' (mismatch)"))
        .expected(cat("a divisor of ", n))
        .found(by);
}

// Heads, groups and their size.
void read_heads(const ConfigFields& c, TowerConfig& t) {
  t.heads = c.size("num_attention_heads");
  t.kv_groups = c.size_or("num_key_value_heads", t.heads);
  must_divide(c, "num_attention_heads", t.heads, "num_key_value_heads", t.kv_groups);
  if (c.has_any({"head_dim", "attention_head_dim"})) {
    t.head_dim = c.size_of({"head_dim", "attention_head_dim"});
  } else {
    must_divide(c, "hidden_size", t.hidden, "num_attention_heads", t.heads);
    t.head_dim = t.hidden / t.heads;
  }
}

// What every decoder has.
void read_text(const ConfigFields& c, ModelConfig& m) {
  m.vocab = c.size("vocab_size");
  m.text.hidden = c.size("hidden_size");
  read_heads(c, m.text);
}

void read_dense_ffn(const ConfigFields& c, ModelConfig& m) {
  m.text.ffn = c.size("intermediate_size");
  m.text.swiglu = c.text_or("hidden_act", "silu") == "silu";
}

void set_layers(ModelConfig& m, i64 count, LayerSpec spec) {
  m.text.layers.assign(static_cast<std::size_t>(count), spec);
}

void read_mtp(const ConfigFields& c, ModelConfig& m, i64 most, LayerSpec layer) {
  constexpr std::string_view kKeys[] = {"num_nextn_predict_layers", "mtp_num_hidden_layers",
                                        "num_mtp_layers"};
  m.mtp.stated = false;
  for (std::string_view key : kKeys) {
    if (!c.has(key)) continue;
    i64 n = c.count_or(key, 0);
    if (m.mtp.stated && n != m.mtp.depths)
      throw c.error(key, "contradicts the other number of MTP layers").expected(m.mtp.depths).found(n);
    if (n > most)
      throw c.unsupported(key, "is more than this family has").expected(cat("at most ", most)).found(n);
    m.mtp.depths = n;
    m.mtp.stated = true;
  }
  m.mtp.layers = {layer};
}

void read_llama(const ConfigFields& c, ModelConfig& m) {
  read_text(c, m);
  read_dense_ffn(c, m);
  refuse_flag(c, "attention_bias");
  refuse_flag(c, "mlp_bias");
  set_layers(m, layer_count(c, "num_hidden_layers"), {});
}

void read_qwen2(const ConfigFields& c, ModelConfig& m) {
  read_llama(c, m);
  m.text.qkv_bias = true;
}

void read_qwen3(const ConfigFields& c, ModelConfig& m) {
  read_llama(c, m);
  m.text.qk_norm = true;
  read_mtp(c, m, 1, {});
}

i64 read_experts(const ConfigFields& c, std::initializer_list<std::string_view> keys) {
  i64 n = c.size_of(keys);
  if (n > kMostExperts)
    throw c.error(*keys.begin(), "is out of range").expected(cat("at most ", kMostExperts)).found(n);
  return n;
}

void check_layer_experts(const ConfigFields& c, const ModelConfig& m) {
  if (static_cast<i64>(m.text.layers.size()) * m.moe.experts > kMostLayerExperts)
    throw c.error("num_hidden_layers", "times the experts is out of range")
        .expected(cat("at most ", kMostLayerExperts));
}

// Qwen: layer n has experts unless it is named, or decoder_sparse_step passes over it.
void choose_sparse_layers(const ConfigFields& c, ModelConfig& m) {
  i64 step = c.size_or("decoder_sparse_step", 1);
  std::vector<i64> dense = c.numbers_or_none("mlp_only_layers");
  i64 layers = static_cast<i64>(m.text.layers.size());
  for (i64 n : dense)
    if (n < 0 || n >= layers)
      throw c.error("mlp_only_layers", "names a layer that is not there")
          .expected(cat("0 to ", layers - 1))
          .found(n);
  for (i64 n = 0; n < layers; n++) {
    bool named = std::find(dense.begin(), dense.end(), n) != dense.end();
    m.text.layers[static_cast<std::size_t>(n)].ffn = !named && (n + 1) % step == 0 ? Ffn::kMoe : Ffn::kDense;
  }
  auto is_dense = [](const LayerSpec& layer) { return layer.ffn == Ffn::kDense; };
  if (std::any_of(m.text.layers.begin(), m.text.layers.end(), is_dense))
    m.text.ffn = c.size("intermediate_size");
}

void read_qwen_experts(const ConfigFields& c, ModelConfig& m) {
  m.moe.experts = read_experts(c, {"num_experts", "num_local_experts"});
  m.moe.ffn = c.size("moe_intermediate_size");
  m.moe.shared_ffn = c.count_or("shared_expert_intermediate_size", 0);
  m.moe.shared_gate = m.moe.shared_ffn > 0;
  m.text.swiglu = c.text_or("hidden_act", "silu") == "silu";
  choose_sparse_layers(c, m);
  check_layer_experts(c, m);
}

void read_qwen3_moe(const ConfigFields& c, ModelConfig& m) {
  read_text(c, m);
  refuse_flag(c, "attention_bias");
  m.text.qk_norm = true;
  set_layers(m, layer_count(c, "num_hidden_layers"), {});
  read_qwen_experts(c, m);
  m.moe.shared_ffn = 0;  // this family has none, whatever the config says
  m.moe.shared_gate = false;
  read_mtp(c, m, 1, {Mixer::kAttention, Ffn::kMoe});
}

// layer_types decides; without it every f-th layer has full attention.
void choose_gdn_layers(const ConfigFields& c, ModelConfig& m) {
  i64 layers = layer_count(c, "num_hidden_layers");
  set_layers(m, layers, {});
  if (!c.has("layer_types")) {
    i64 interval = c.size_or("full_attention_interval", 4);
    for (i64 n = 0; n < layers; n++)
      m.text.layers[static_cast<std::size_t>(n)].mixer =
          (n + 1) % interval == 0 ? Mixer::kAttention : Mixer::kGdn;
    return;
  }
  std::vector<std::string> types = c.texts("layer_types");
  if (static_cast<i64>(types.size()) != layers)
    throw c.error("layer_types", "has not one entry a layer").expected(layers).found(types.size());
  for (std::size_t n = 0; n < types.size(); n++) {
    if (types[n] != "linear_attention" && types[n] != "full_attention")
      throw c.error("layer_types", "names a kind of layer that is not known")
          .expected("linear_attention or full_attention")
          .found(escaped(types[n]));
    m.text.layers[n].mixer = types[n] == "linear_attention" ? Mixer::kGdn : Mixer::kAttention;
  }
}

void read_gdn(const ConfigFields& c, GdnConfig& g) {
  g.key_heads = c.size_or("linear_num_key_heads", 16);
  g.value_heads = c.size_or("linear_num_value_heads", 32);
  g.key_dim = c.size_or("linear_key_head_dim", 128);
  g.value_dim = c.size_or("linear_value_head_dim", 128);
  g.conv_kernel = c.size_or("linear_conv_kernel_dim", 4);
  must_divide(c, "linear_num_value_heads", g.value_heads, "linear_num_key_heads", g.key_heads);
}

void read_gated_decoder(const ConfigFields& c, ModelConfig& m) {
  read_text(c, m);
  refuse_flag(c, "attention_bias");
  refuse_flag(c, "mtp_use_dedicated_embeddings");
  m.text.qk_norm = m.text.output_gate = true;
  read_gdn(c, m.gdn);
  choose_gdn_layers(c, m);
}

void read_qwen3_next(const ConfigFields& c, ModelConfig& m) {
  read_gated_decoder(c, m);
  read_qwen_experts(c, m);
  read_mtp(c, m, 1, {Mixer::kAttention, Ffn::kMoe});
}

void read_qwen3_5_text(const ConfigFields& c, ModelConfig& m) {
  read_gated_decoder(c, m);
  read_dense_ffn(c, m);
  read_mtp(c, m, 1, {});
}

void read_vision(const ConfigFields& top, ModelConfig& m, bool deepstack) {
  ConfigFields c = top.object("vision_config");
  TowerConfig& t = m.vision_tower;
  t.hidden = c.size("hidden_size");
  t.heads = t.kv_groups = c.size("num_heads");
  must_divide(c, "hidden_size", t.hidden, "num_heads", t.heads);
  t.head_dim = t.hidden / t.heads;
  t.ffn = c.size("intermediate_size");
  t.qkv_bias = t.proj_bias = true;
  t.gated_mlp = t.swiglu = false;
  t.layers.assign(static_cast<std::size_t>(layer_count(c, "depth")), {});
  VisionConfig& v = m.vision;
  v.in_channels = c.size("in_channels");
  v.patch = c.size("patch_size");
  v.temporal_patch = c.size("temporal_patch_size");
  v.positions = c.size("num_position_embeddings");
  v.out_hidden = c.size("out_hidden_size");
  v.merge = c.size("spatial_merge_size");
  if (v.merge > 1024)
    throw c.error("spatial_merge_size", "is out of range").expected("at most 1024").found(v.merge);
  if (v.out_hidden != m.text.hidden)
    throw c.error("out_hidden_size", "is not the hidden size of the language model")
        .expected(m.text.hidden)
        .found(v.out_hidden);
  v.deepstack = static_cast<i64>(c.numbers_or_none("deepstack_visual_indexes").size());
  if (v.deepstack > 0 && !deepstack)
    throw c.unsupported("deepstack_visual_indexes", "is not empty; this family has no deepstack mergers");
}

void read_qwen3_vl(const ConfigFields& top, ModelConfig& m) {
  ConfigFields c = top.object("text_config");
  read_text(c, m);
  read_dense_ffn(c, m);
  m.text.qk_norm = true;
  m.text.qkv_bias = c.flag_or("attention_bias", false);
  set_layers(m, layer_count(c, "num_hidden_layers"), {});
  read_vision(top, m, true);
}

void read_qwen3_vl_moe(const ConfigFields& top, ModelConfig& m) {
  ConfigFields c = top.object("text_config");
  read_qwen3_moe(c, m);
  m.mtp = {};
  read_vision(top, m, true);
}

void read_qwen3_5(const ConfigFields& top, ModelConfig& m) {
  read_qwen3_5_text(top.object("text_config"), m);
  read_vision(top, m, false);
}

void read_qwen3_5_moe(const ConfigFields& top, ModelConfig& m) {
  read_qwen3_next(top.object("text_config"), m);
  read_vision(top, m, false);
}

void read_gpt_oss(const ConfigFields& c, ModelConfig& m) {
  read_text(c, m);
  TowerConfig& t = m.text;
  t.qkv_bias = t.proj_bias = t.sinks = true;
  t.swiglu = false;  // a gated activation, but no SiLU
  if (!c.flag_or("attention_bias", true))
    throw c.unsupported("attention_bias", "is false; gpt-oss has biases");
  set_layers(m, layer_count(c, "num_hidden_layers"), {Mixer::kAttention, Ffn::kMoe});
  m.moe.experts = read_experts(c, {"num_local_experts", "num_experts"});
  m.moe.ffn = c.size("intermediate_size");
  m.moe.router_bias = true;
  m.tied = false;
  check_layer_experts(c, m);
}

void read_mla(const ConfigFields& c, MlaConfig& mla) {
  mla.q_lora = c.has("q_lora_rank") ? c.size("q_lora_rank") : 0;
  mla.kv_lora = c.size("kv_lora_rank");
  mla.nope = c.size("qk_nope_head_dim");
  mla.rope = c.size("qk_rope_head_dim");
  mla.v_dim = c.size("v_head_dim");
}

void read_deepseek_v3(const ConfigFields& c, ModelConfig& m) {
  m.vocab = c.size("vocab_size");
  m.text.hidden = c.size("hidden_size");
  m.text.heads = m.text.kv_groups = c.size("num_attention_heads");
  refuse_flag(c, "attention_bias");
  read_dense_ffn(c, m);
  read_mla(c, m.mla);
  m.text.head_dim = m.mla.nope + m.mla.rope;
  m.moe.experts = read_experts(c, {"n_routed_experts", "num_local_experts"});
  m.moe.ffn = c.size("moe_intermediate_size");
  m.moe.shared_ffn =
      checked_mul(c.count_or("n_shared_experts", 0), m.moe.ffn, "the width of the shared experts");
  m.moe.expert_bias = true;
  m.tied = false;
  i64 layers = layer_count(c, "num_hidden_layers");
  i64 first = c.count_or("first_k_dense_replace", 0), every = c.size_or("moe_layer_freq", 1);
  set_layers(m, layers, {Mixer::kLatentAttention, Ffn::kDense});
  for (i64 n = first; n < layers; n++)
    if (n % every == 0) m.text.layers[static_cast<std::size_t>(n)].ffn = Ffn::kMoe;
  check_layer_experts(c, m);
  read_mtp(c, m, 16, {Mixer::kLatentAttention, Ffn::kMoe});
}

LayerSpec hybrid_layer(const ConfigFields& c, std::string_view key, std::string_view kind) {
  constexpr std::pair<std::string_view, LayerSpec> kKinds[] = {
      {"M", {Mixer::kMamba, Ffn::kNone}},
      {"mamba", {Mixer::kMamba, Ffn::kNone}},
      {"linear_attention", {Mixer::kMamba, Ffn::kNone}},
      {"*", {Mixer::kAttention, Ffn::kNone}},
      {"attention", {Mixer::kAttention, Ffn::kNone}},
      {"full_attention", {Mixer::kAttention, Ffn::kNone}},
      {"-", {Mixer::kNone, Ffn::kDense}},
      {"mlp", {Mixer::kNone, Ffn::kDense}},
      {"E", {Mixer::kNone, Ffn::kMoe}},
      {"moe", {Mixer::kNone, Ffn::kMoe}},
  };
  for (const auto& [name, spec] : kKinds)
    if (name == kind) return spec;
  throw c.error(key, "names a kind of layer that is not known")
      .expected("M, *, - and E, or mamba, attention, mlp and moe")
      .found(escaped(kind));
}

// One of two spellings: a string with a letter a layer, or a list of words.
std::vector<LayerSpec> hybrid_layers(const ConfigFields& c, std::string_view pattern_key,
                                     std::string_view list_key) {
  std::vector<LayerSpec> layers;
  if (c.has(pattern_key)) {
    for (char symbol : c.text_or(pattern_key, ""))
      if (symbol != '|') layers.push_back(hybrid_layer(c, pattern_key, {&symbol, 1}));
  } else if (c.has(list_key)) {
    for (const std::string& kind : c.texts(list_key)) layers.push_back(hybrid_layer(c, list_key, kind));
  } else {
    throw c.error(pattern_key, cat("is missing, and so is '", c.key(list_key), "'"));
  }
  if (layers.empty() || static_cast<i64>(layers.size()) > kMostLayers)
    throw c.error(c.has(pattern_key) ? pattern_key : list_key, "has an absurd number of layers")
        .expected(cat("1 to ", kMostLayers))
        .found(layers.size());
  return layers;
}

void read_mamba(const ConfigFields& c, MambaConfig& mamba) {
  mamba.heads = c.size("mamba_num_heads");
  mamba.head_dim = c.size("mamba_head_dim");
  mamba.state = c.size("ssm_state_size");
  mamba.groups = c.size_of({"n_groups", "mamba_n_groups"});
  mamba.conv_kernel = c.size_of({"conv_kernel", "mamba_d_conv"});
  must_divide(c, "mamba_num_heads", mamba.heads, "n_groups", mamba.groups);
  refuse_flag(c, "mamba_proj_bias");
  if (!c.flag_or("use_conv_bias", true))
    throw c.unsupported("use_conv_bias", "is false; Megatron's Mamba has that bias");
}

void read_hybrid_experts(const ConfigFields& c, ModelConfig& m) {
  m.moe.experts = read_experts(c, {"n_routed_experts", "num_local_experts"});
  m.moe.ffn = c.size("moe_intermediate_size");
  m.moe.latent = c.count_or("moe_latent_size", 0);
  if (c.count_or("n_shared_experts", 1) > 0)
    m.moe.shared_ffn = c.count_or("moe_shared_expert_intermediate_size", 0);
  m.moe.expert_bias = true;
  check_layer_experts(c, m);
}

void read_nemotron_h(const ConfigFields& c, ModelConfig& m) {
  read_text(c, m);
  for (const char* bias : {"attention_bias", "mlp_bias", "use_bias"}) refuse_flag(c, bias);
  m.text.gated_mlp = m.text.swiglu = false;
  m.text.layers = hybrid_layers(c, "hybrid_override_pattern", "layers_block_type");
  i64 layers = static_cast<i64>(m.text.layers.size());
  if (c.has("hybrid_override_pattern") && c.size_or("num_hidden_layers", layers) != layers)
    throw c.error("num_hidden_layers", "is not the length of 'hybrid_override_pattern'")
        .expected(layers)
        .found(c.size("num_hidden_layers"));
  // A model without MTP still carries a list of its layers.
  read_mtp(c, m, 16, {});
  m.mtp.stated = true;
  m.mtp.layers.clear();
  if (m.mtp.depths > 0)
    m.mtp.layers = hybrid_layers(c, "mtp_hybrid_override_pattern", "mtp_layers_block_type");
  std::vector<LayerSpec> all = m.text.layers;
  all.insert(all.end(), m.mtp.layers.begin(), m.mtp.layers.end());
  auto any = [&](LayerSpec spec) { return std::find(all.begin(), all.end(), spec) != all.end(); };
  if (any({Mixer::kMamba, Ffn::kNone})) read_mamba(c, m.mamba);
  if (any({Mixer::kNone, Ffn::kDense})) m.text.ffn = c.size("intermediate_size");
  if (any({Mixer::kNone, Ffn::kMoe})) read_hybrid_experts(c, m);
}

struct ReaderRow {
  std::string_view family;
  FamilyReader read;
};

constexpr ReaderRow kReaders[] = {
    {"llama", read_llama},
    {"qwen2", read_qwen2},
    {"qwen3", read_qwen3},
    {"qwen3_moe", read_qwen3_moe},
    {"qwen3_next", read_qwen3_next},
    {"qwen3_5", read_qwen3_5},
    {"qwen3_5_moe", read_qwen3_5_moe},
    {"qwen3_5_text", read_qwen3_5_text},
    {"qwen3_5_moe_text", read_qwen3_next},
    {"qwen3_vl", read_qwen3_vl},
    {"qwen3_vl_moe", read_qwen3_vl_moe},
    {"nemotron_h", read_nemotron_h},
    {"deepseek_v3", read_deepseek_v3},
    {"gpt_oss", read_gpt_oss},
};

}  // namespace

FamilyReader family_reader(std::string_view family) {
  for (const ReaderRow& row : kReaders)
    if (row.family == family) return row.read;
  throw Error(Code::kInternal, cat("no reader of configs for the family ", family));
}

}  // namespace mckpt
