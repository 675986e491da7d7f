// The names of conditions, and which of them a model meets. The three forms of experts are conditions that no
// configuration answers: they come from the tensors of the file (mappings/model/accounting.h), so their
// function is null.
#include "mappings/needs.h"

#include "core/base/error.h"
#include "mappings/config.h"
#include "mappings/family.h"

#include <algorithm>
#include <vector>

namespace mckpt::impl {
namespace {

// One condition: its enumerator, its name in map files, and the test.
struct Condition {
  Needs needs;
  std::string_view name;
  bool (*holds)(const ModelConfig&, const TowerConfig&);  // null: one of the forms of experts
};

using M = const ModelConfig&;
using T = const TowerConfig&;

constexpr Condition kConditions[] = {
    {Needs::kAlways, "", [](M, T) { return true; }},
    {Needs::kQkvBias, "qkv_bias", [](M, T t) { return t.qkv_bias; }},
    {Needs::kProjBias, "proj_bias", [](M, T t) { return t.proj_bias; }},
    {Needs::kQkNorm, "qk_norm", [](M, T t) { return t.qk_norm; }},
    {Needs::kOwnValues, "own_values", [](M, T t) { return t.key_values == KeyValues::kOwn; }},
    {Needs::kOneKeyValue, "one_key_value", [](M, T t) { return t.key_values == KeyValues::kOneTensor; }},
    {Needs::kNoKeys, "no_keys", [](M, T t) { return t.key_values == KeyValues::kOfEarlierLayer; }},
    {Needs::kKeyNorm, "key_norm",
     [](M, T t) { return t.qk_norm && t.key_values != KeyValues::kOfEarlierLayer; }},
    {Needs::kLayerInput, "layer_input", [](M m, T) { return m.layer_input > 0; }},
    {Needs::kSinks, "sinks", [](M, T t) { return t.sinks; }},
    {Needs::kQueryLora, "query_lora", [](M m, T) { return m.mla.q_lora > 0; }},
    {Needs::kNoQueryLora, "no_query_lora", [](M m, T) { return m.mla.q_lora == 0; }},
    {Needs::kRouterBias, "router_bias", [](M m, T) { return m.moe.router_bias; }},
    {Needs::kExpertBias, "expert_bias", [](M m, T t) { return m.moe.expert_bias && !t.hash_routing; }},
    {Needs::kExperts, "experts", [](M m, T) { return m.moe.experts > 0; }},
    {Needs::kNoExperts, "no_experts", [](M m, T) { return m.moe.experts == 0; }},
    {Needs::kLatent, "latent_experts", [](M m, T) { return m.moe.latent > 0; }},
    {Needs::kMambaNorm, "mamba_norm", [](M m, T) { return m.mamba.norm; }},
    {Needs::kSharedExpert, "shared_expert", [](M m, T) { return m.moe.shared_ffn > 0; }},
    {Needs::kSharedGate, "shared_gate", [](M m, T) { return m.moe.shared_ffn > 0 && m.moe.shared_gate; }},
    {Needs::kStandardized, "standardized", [](M m, T) { return m.vision.standardized; }},
    {Needs::kVideoEmbedder, "video_embedder", [](M m, T) { return m.vision.video_embedder; }},
    {Needs::kAudio, "audio", [](M m, T) { return m.audio_tower.hidden > 0; }},
    {Needs::kTowerNorm, "tower_norm", [](M m, T) { return m.vision.final_norm; }},
    {Needs::kTowerBias, "tower_bias", [](M m, T) { return !m.vision.rms_norms; }},
    {Needs::kClipped, "clipped", [](M, T t) { return t.clipped; }},
    {Needs::kHashRouting, "hash_routing", [](M, T t) { return t.hash_routing; }},
    {Needs::kNGrams, "ngrams", [](M, T t) { return t.ngram_rows > 0; }},
    {Needs::kTied, "tied", [](M m, T) { return m.tied; }},
    {Needs::kUntied, "untied", [](M m, T) { return !m.tied; }},
    {Needs::kExpertsApart, "experts_apart", nullptr},
    {Needs::kExpertsFused, "experts_fused", nullptr},
    {Needs::kExpertsHub, "experts_hub", nullptr},
};

// The table is in the order of the enumerators.
const Condition& condition(Needs needs) { return kConditions[static_cast<std::size_t>(needs)]; }

}  // namespace

bool is_expert_form(Needs needs) { return condition(needs).holds == nullptr; }

bool holds(Needs needs, const ModelConfig& model, const TowerConfig& tower, Needs form) {
  return is_expert_form(needs) ? needs == form : condition(needs).holds(model, tower);
}

bool family_has(const Family& family, Needs needs) {
  if (needs == Needs::kAlways || needs == Needs::kTied || needs == Needs::kUntied) return true;
  const auto& among = is_expert_form(needs) ? family.expert_forms : family.conditions;
  return std::ranges::find(among, needs) != among.end();
}

std::string_view needs_name(Needs needs) { return condition(needs).name; }

Needs needs_from_name(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Condition& c : kConditions) {
    if (c.name == name) return c.needs;
    names.push_back(c.name);
  }
  Error e(Code::kBadMap, cat("there is no condition '", escaped(name), "'"));
  if (std::string_view near = nearest(name, names); !near.empty()) e.help(cat("did you mean '", near, "'?"));
  throw e;
}

}  // namespace mckpt::impl
