// A table of the names of norms, and a walk over pickled values that decides whether a state is empty.
#include "convert/layers/layer_modules.h"

namespace mckpt::impl {
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

// A state with deeper nested lists is taken for one that is not empty.
constexpr int kMostNested = 4;

bool is_empty(const PickleValue& v, int depth) {
  using Kind = PickleValue::Kind;
  if (v.is_none()) return true;
  if (depth > kMostNested) return false;
  if (v.is(Kind::kBytes) || v.is(Kind::kText)) return v.size() == 0;
  if (v.is(Kind::kList) || v.is(Kind::kTuple)) {
    for (PickleValue item : v.items())
      if (!is_empty(item, depth + 1)) return false;
    return true;
  }
  if (!v.is(Kind::kObject)) return false;
  // A tensor is made of storage, offset, size and strides; a BytesIO of its bytes.
  const PickleObject& object = v.as_object();
  std::span<const PickleValue> args = object.args.tuple();
  if (args.size() > 2 && args[0].is(Kind::kStorage)) {
    for (PickleValue dim : args[2].items())
      if (dim.is_int() && dim.as_int() == 0) return true;
    return false;
  }
  PickleValue bytes = args.empty() ? object.state.at(0) : args[0];
  return bytes.is(Kind::kBytes) && bytes.size() == 0;
}

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

bool is_empty_state(const PickleValue& value) { return is_empty(value, 0); }

}  // namespace mckpt::impl
