// The list of linear layers is of megatron-core 0.19.2: the modules that are built inside its context of
// 8-bit initialisation, in layers of the text model and of MTP.
#include "mappings/fsdp/fp8.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "core/base/error.h"
#include "mappings/family.h"
#include "mappings/fsdp/setup.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::array kLinear = {"linear_qkv"sv,
                                "linear_proj"sv,
                                "linear_fc1"sv,
                                "linear_fc2"sv,
                                "in_proj"sv,
                                "out_proj"sv,
                                "linear_q_proj"sv,
                                "linear_q_down_proj"sv,
                                "linear_q_up_proj"sv,
                                "linear_kv_down_proj"sv,
                                "linear_kv_up_proj"sv,
                                "linear_qkv_down_proj"sv,
                                "fc1_latent_proj"sv,
                                "fc2_latent_proj"sv,
                                "eh_proj"sv};

// Modules of layers with weights that Transformer Engine does not have: Megatron's own router, and torch's
// linear layers that Megatron-Bridge adds for Gemma 4.
constexpr std::array kOther = {"router"sv, "per_layer_input_gate"sv, "per_layer_projection"sv};

// "weight", or "weight12" of grouped experts.
bool is_weight(std::string_view leaf) {
  constexpr std::string_view kWeight = "weight";
  if (!leaf.starts_with(kWeight)) return false;
  return leaf.find_first_not_of("0123456789", kWeight.size()) == leaf.npos;
}

bool is_matrix_of_layer(const ModelParameter& p) {
  return p.shape().rank() == 2 && p.section && p.section->tower == Tower::kText &&
         (p.unit >= 0 || p.name.starts_with("mtp."));
}

// The module of a weight, "linear_qkv"; "" for another name.
std::string_view module_of_weight(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == name.npos || !is_weight(name.substr(dot + 1))) return "";
  const std::string_view module = name.substr(0, dot);
  return module.substr(module.rfind('.') + 1);
}

bool is_in(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_indexer(const ModelParameter& p) { return p.name.find(".indexer.") != p.name.npos; }

[[noreturn]] void refuse(std::string what, std::string why) {
  throw Error(Code::kBadLayout, std::move(what)).note(std::move(why)).help("leave out `fp8_recipe`");
}

// MXFP8 has blocks of 32 items, and Transformer Engine makes no weight that is not made of whole ones.
void refuse_parts_of_blocks(const ModelParameter& p) {
  const Shape& shape = p.shape();
  if (shape[0] % kItemsPerMxfp8Scale == 0 && shape[1] % kItemsPerMxfp8Scale == 0) return;
  throw Error(Code::kBadLayout, "an MXFP8 weight is not made of whole blocks")
      .tensor(p.global_name)
      .expected("rows and columns that are multiples of 32, on each tensor-parallel rank")
      .found(to_string(shape))
      .note("Transformer Engine refuses such a weight")
      .help("choose another `tp`, or leave out `fp8_recipe`");
}

}  // namespace

bool is_fp8_weight(const ModelParameter& p, const FsdpSetup& setup) {
  return setup.fp8 != Fp8Recipe::kNone && is_matrix_of_layer(p) && is_fp8_name(p.name);
}

bool is_fp8_name(std::string_view name) { return is_in(kLinear, module_of_weight(name)); }

i64 block_rows(const FsdpSetup& setup) {
  return setup.fp8 == Fp8Recipe::kMxfp8 && setup.engine == Engine::kV2 ? kItemsPerMxfp8Scale : 1;
}

i64 weight_copies(const FsdpSetup& setup) { return setup.fp8 == Fp8Recipe::kMxfp8 ? 2 : 1; }

void refuse_fp8(const std::vector<ModelParameter>& parameters, const FsdpSetup& setup) {
  if (setup.fp8 == Fp8Recipe::kNone) return;
  if (setup.engine == Engine::kV2 && setup.fp8 != Fp8Recipe::kMxfp8)
    refuse("Megatron-FSDP v2 has no 8-bit weights but MXFP8",
           "Megatron refuses other recipes for weights that are gathered in 8 bits");
  if (setup.engine == Engine::kV1 && setup.strategy != Strategy::kOptimGradsParams)
    refuse("Megatron-FSDP v1 has 8-bit weights under optim_grads_params alone",
           "it quantises shards of weights that are sharded, and no others");
  for (const ModelParameter& p : parameters) {
    if (is_indexer(p)) refuse("which weights of an indexer are of 8 bits is not known", p.global_name);
    if (const std::string_view module = module_of_weight(p.name);
        is_matrix_of_layer(p) && !module.empty() && !is_in(kLinear, module) && !is_in(kOther, module))
      refuse("it is not known whether the weight is of 8 bits", p.global_name);
    if (!is_fp8_weight(p, setup)) continue;
    if (setup.fp8 == Fp8Recipe::kMxfp8) refuse_parts_of_blocks(p);
    if (!p.trainable && setup.saved && setup.engine == Engine::kV1)
      refuse("what a run saves of frozen 8-bit weights is not known",
             cat("they have no main weight under v1: ", p.global_name));
  }
}

}  // namespace mckpt::impl
