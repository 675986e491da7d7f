// By the parts of names that only Megatron's layers have.
#include "convert/open/megatron_names.h"

#include <algorithm>
#include <string_view>

#include "io/store/store.h"

namespace mckpt::impl {
namespace {

// The parts of Megatron's layers; models of Hugging Face have "self_attn" and "mlp.up_proj" there, or one of
// their own projections in an attention that is called like Megatron's (Dia, NLLB-MoE).
constexpr std::string_view kMegatronParts[] = {".self_attention.", ".cross_attention.",      ".mixer.",
                                               ".mlp.linear_fc",   ".mlp.experts.linear_fc", ".mlp.router."};
constexpr std::string_view kOwnProjections[] = {"attention.q_proj.", "attention.k_proj.", "attention.v_proj.",
                                                "attention.o_proj.", "cross_attention.out_proj."};

bool is_of_megatron(std::string_view name) {
  constexpr std::string_view kLayers = "decoder.layers.";
  std::size_t at = name.find(kLayers);
  if (at == name.npos || (at > 0 && name[at - 1] != '.')) return false;
  std::string_view rest = name.substr(at + kLayers.size() - 1);
  auto has = [&](std::string_view part) { return rest.find(part) != rest.npos; };
  return std::ranges::any_of(kMegatronParts, has) && std::ranges::none_of(kOwnProjections, has);
}

}  // namespace

bool has_megatron_names(const Store& store) {
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (is_of_megatron(store.name(t))) return true;
  return false;
}

}  // namespace mckpt::impl
