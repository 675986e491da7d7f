// Nemotron-H: a hybrid model whose config contains a pattern with the kind of each layer, in one of two
// spellings:
//
//   "hybrid_override_pattern": "M-M*-"                    M Mamba, * attention, - dense MLP, E experts; | is skipped
//   "layers_block_type": ["mamba", "mlp", "mamba", "attention", "mlp"]
//
// Entries that no layer of the pattern needs are not read, because configs often lack them.
#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/config/fields.h"
#include "hf/config/named_parts.h"
#include "hf/config/parts.h"
#include "mappings/config.h"

namespace mckpt::impl {
namespace {

// The layer of one letter or word. Every layer has either a mixer or a feed-forward part, never both.
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

// The layers of a pattern in either spelling: a string with one letter for each layer, or a list of words.
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

// The sizes of Mamba mixers. Megatron's mixers have a bias of the convolution and none of the projections.
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

// The experts of the E layers, with an optional latent size and a shared expert, whose width counts alone:
// no class reads n_shared_experts.
void read_hybrid_experts(const ConfigFields& c, ModelConfig& m) {
  constexpr std::string_view kKeys[] = {"n_routed_experts", "num_local_experts"};
  m.moe.experts = read_experts(c, kKeys);
  m.moe.ffn = c.size("moe_intermediate_size");
  m.moe.latent = c.count_or("moe_latent_size", 0);
  m.moe.shared_ffn = c.count_or("moe_shared_expert_intermediate_size", 7688);
  m.moe.expert_bias = true;
  check_layer_experts(c, m);
}

}  // namespace

void read_hybrid_layers(const ConfigFields& c, ModelConfig& m, i64) {
  m.text.layers = hybrid_layers(c, "hybrid_override_pattern", "layers_block_type");
  i64 layers = static_cast<i64>(m.text.layers.size());
  if (c.has("hybrid_override_pattern") && c.size_or("num_hidden_layers", layers) != layers)
    throw c.error("num_hidden_layers", "is not the length of 'hybrid_override_pattern'")
        .expected(layers)
        .found(c.size("num_hidden_layers"));
  // The config of a model without MTP may still have a pattern for MTP layers; it counts only with depths
  // above 0.
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

}  // namespace mckpt::impl
