#include "convert/layers/norm_place.h"

namespace mckpt {
namespace {

struct Norm {
  LayerKind kind;
  std::string_view apart, fused;
};
constexpr Norm kNorms[] = {
    {LayerKind::kAttention, "input_layernorm.weight", "self_attention.linear_qkv.layer_norm_weight"},
    {LayerKind::kAttention, "input_layernorm.bias", "self_attention.linear_qkv.layer_norm_bias"},
    {LayerKind::kMlp, "pre_mlp_layernorm.weight", "mlp.linear_fc1.layer_norm_weight"},
    {LayerKind::kMlp, "pre_mlp_layernorm.bias", "mlp.linear_fc1.layer_norm_bias"},
};

}  // namespace

std::string_view moved_norm(std::string_view rest, LayerKind kind, NormPlace to) {
  for (const Norm& n : kNorms) {
    if (n.kind != kind || to == NormPlace::kKeep) continue;
    if (rest == (to == NormPlace::kFused ? n.apart : n.fused))
      return to == NormPlace::kFused ? n.fused : n.apart;
  }
  return rest;
}

bool is_state_of_norm(std::string_view rest, LayerKind kind) {
  return (kind == LayerKind::kAttention && rest == "input_layernorm._extra_state") ||
         (kind == LayerKind::kMlp && rest == "pre_mlp_layernorm._extra_state");
}

}  // namespace mckpt
