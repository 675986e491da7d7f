// Readers of Ling 2.0 and Sarvam, MiMo, and Falcon-H1: decoders of other families' parts with names and
// numbers of their own.
#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/config_fields.h"
#include "hf/config_parts.h"
#include "hf/config_readers.h"
#include "io/json/json.h"
#include "mappings/config.h"

namespace mckpt::impl {

// Attention with one tensor for q, k and v; the first layers are dense, all others have experts and a shared
// one.
void read_bailing_moe(const ConfigFields& c, ModelConfig& m) {
  read_text(c, m, {.kv_groups = 4});
  read_dense_ffn(c, m);
  refuse_flag(c, "use_bias");
  m.text.qkv_bias = c.flag_or("use_qkv_bias", false);
  m.text.qk_norm = c.flag_or("use_qk_norm", true);
  i64 layers = layer_count(c, "num_hidden_layers");
  set_layers(m, layers, {Mixer::kAttention, Ffn::kMoe});
  for (i64 n = 0; n < std::min(layers, c.count_or("first_k_dense_replace", 0)); n++)
    m.text.layers[n].ffn = Ffn::kDense;
  m.moe.experts = read_experts(c, {"num_experts"});
  m.moe.ffn = c.size("moe_intermediate_size");
  m.moe.shared_ffn =
      checked_mul(c.count_or("num_shared_experts", 0), m.moe.ffn, "the width of the shared experts");
  m.moe.expert_bias = c.flag_or("moe_router_enable_expert_bias", true);
  check_layer_experts(c, m);
  read_mtp(c, m, 16, {Mixer::kAttention, Ffn::kMoe});
}

// Qwen2 with MTP layers.
void read_mimo(const ConfigFields& c, ModelConfig& m) {
  read_text(c, m, {.kv_groups = 32, .null_groups_are_heads = true});
  read_dense_ffn(c, m);
  m.text.qkv_bias = c.flag_or("attention_bias", true);
  set_layers(m, layer_count(c, "num_hidden_layers"), {});
  read_mtp(c, m, 16, {});
}

// The size of a Mamba head is a number, or "auto": what the heads share.
void read_falcon_h1(const ConfigFields& c, ModelConfig& m) {
  read_text(c, m, {.kv_groups = 8});
  read_dense_ffn(c, m);
  for (const char* bias : {"attention_bias", "mlp_bias", "mamba_proj_bias", "projectors_bias"})
    refuse_flag(c, bias);
  if (!c.flag_or("mamba_conv_bias", true))
    throw c.unsupported("mamba_conv_bias", "is false; Megatron's Mamba has that bias");
  set_layers(m, layer_count(c, "num_hidden_layers"), {Mixer::kAttentionAndMamba, Ffn::kDense});
  MambaConfig& mamba = m.mamba;
  mamba.heads = c.size("mamba_n_heads");
  i64 inner = c.has("mamba_d_ssm")
                  ? c.size("mamba_d_ssm")
                  : checked_mul(c.size_or("mamba_expand", 2), m.text.hidden, "the width of the Mamba mixers");
  must_divide(c, "mamba_d_ssm", inner, "mamba_n_heads", mamba.heads);
  mamba.head_dim = inner / mamba.heads;
  if (const JsonValue* dim = c.find("mamba_d_head");
      dim && dim->is_integer() && c.size("mamba_d_head") != mamba.head_dim)
    throw c.error("mamba_d_head", "is not what each head has of 'mamba_d_ssm'")
        .expected(mamba.head_dim)
        .found(c.size("mamba_d_head"));
  mamba.state = c.size("mamba_d_state");
  mamba.groups = c.size("mamba_n_groups");
  mamba.conv_kernel = c.size("mamba_d_conv");
  mamba.norm = c.flag_or("mamba_rms_norm", false);
  must_divide(c, "mamba_n_heads", mamba.heads, "mamba_n_groups", mamba.groups);
}

}  // namespace mckpt::impl
