// The words in which the tables write the steps of their configs: a function for each kind of step, and the
// names of the numbers and flags that several tables fill.
#pragma once

#include "mappings/config_steps.h"

namespace mckpt::impl {
namespace config_steps {

// member<&ModelConfig::moe, &MoeConfig::ffn>
template <auto... kPath>
constexpr auto& member(ModelConfig& m) {
  return (m.*....*kPath);
}

using Kind = ConfigStep::Kind;
using Key = std::string_view;

constexpr ConfigStep size(NumberOf to, Key key, Key also = {}) {
  return {.kind = Kind::kSize, .keys = {key, also}, .number = to};
}
constexpr ConfigStep size_or(NumberOf to, Key key, i64 otherwise) {
  return {.kind = Kind::kSizeOr, .keys = {key}, .number = to, .otherwise = otherwise};
}
constexpr ConfigStep count_or(NumberOf to, Key key, i64 otherwise) {
  return {.kind = Kind::kCountOr, .keys = {key}, .number = to, .otherwise = otherwise};
}
constexpr ConfigStep count_unless_null(NumberOf to, Key key, i64 otherwise) {
  return {.kind = Kind::kCountUnlessNull, .keys = {key}, .number = to, .otherwise = otherwise};
}
constexpr ConfigStep flag(FlagOf to, Key key, bool otherwise) {
  return {.kind = Kind::kFlag, .keys = {key}, .flag = to, .otherwise = otherwise};
}
constexpr ConfigStep fixed(NumberOf to, i64 value) {
  return {.kind = Kind::kFixed, .number = to, .otherwise = value};
}
constexpr ConfigStep same(NumberOf to, NumberOf as) {
  return {.kind = Kind::kSame, .number = to, .other = as};
}
constexpr ConfigStep set(FlagOf to, bool value) {
  return {.kind = Kind::kSet, .flag = to, .otherwise = value};
}
constexpr ConfigStep refused(Key key) { return {.kind = Kind::kRefused, .keys = {key}}; }
constexpr ConfigStep needed(Key key, std::string_view why) {
  return {.kind = Kind::kNeeded, .keys = {key}, .words = why};
}
constexpr ConfigStep divides(Key whole, NumberOf n, Key part, NumberOf by) {
  return {.kind = Kind::kDivides, .keys = {whole, part}, .number = n, .other = by};
}
constexpr ConfigStep text(HeadDefaults heads = {}) { return {.kind = Kind::kText, .heads = heads}; }
constexpr ConfigStep activation() { return {.kind = Kind::kActivation}; }
constexpr ConfigStep layers(LayerSpec layer = {}) { return {.kind = Kind::kLayers, .layer = layer}; }
constexpr ConfigStep experts(Key key, Key also = {}, Key too = {}) {
  return {.kind = Kind::kExperts, .keys = {key, also, too}};
}
constexpr ConfigStep shared_experts(Key key, i64 otherwise, Key also = {}) {
  return {.kind = Kind::kSharedExperts, .keys = {key, also}, .otherwise = otherwise};
}
constexpr ConfigStep dense_layers(i64 otherwise) {
  return {.kind = Kind::kDenseLayers, .otherwise = otherwise};
}
constexpr ConfigStep layer_experts() { return {.kind = Kind::kLayerExperts}; }
constexpr ConfigStep mtp(i64 most, LayerSpec layer = {}) {
  return {.kind = Kind::kMtp, .otherwise = most, .layer = layer};
}
constexpr ConfigStep no_mtp() { return {.kind = Kind::kNoMtp}; }
constexpr ConfigStep tied() { return {.kind = Kind::kTied}; }
constexpr ConfigStep tied_by_either() { return {.kind = Kind::kTiedByEither}; }
constexpr ConfigStep part(std::string_view name, i64 number = 0) {
  return {.kind = Kind::kPart, .otherwise = number, .words = name};
}
constexpr ConfigStep inside(Key key, std::span<const ConfigStep> steps, std::string_view defaults = {}) {
  return {.kind = Kind::kInside, .keys = {key}, .words = defaults, .steps = steps};
}
constexpr ConfigStep inside_or_here(Key key, std::span<const ConfigStep> steps) {
  return {.kind = Kind::kInsideOrHere, .keys = {key}, .steps = steps};
}
constexpr ConfigStep where(Key key, std::string_view word, std::span<const ConfigStep> steps) {
  return {.kind = Kind::kWhere, .keys = {key}, .words = word, .steps = steps};
}
constexpr ConfigStep all_of(std::span<const ConfigStep> steps) {
  return {.kind = Kind::kSteps, .steps = steps};
}

// The numbers and flags that tables name.
inline constexpr NumberOf kVocab = member<&ModelConfig::vocab>;
inline constexpr NumberOf kHidden = member<&ModelConfig::text, &TowerConfig::hidden>;
inline constexpr NumberOf kHeads = member<&ModelConfig::text, &TowerConfig::heads>;
inline constexpr NumberOf kKvGroups = member<&ModelConfig::text, &TowerConfig::kv_groups>;
inline constexpr NumberOf kFfn = member<&ModelConfig::text, &TowerConfig::ffn>;
inline constexpr NumberOf kMoeFfn = member<&ModelConfig::moe, &MoeConfig::ffn>;
inline constexpr NumberOf kSharedFfn = member<&ModelConfig::moe, &MoeConfig::shared_ffn>;
inline constexpr FlagOf kTiedHead = member<&ModelConfig::tied>;
inline constexpr FlagOf kLayersApart = member<&ModelConfig::layers_apart>;
inline constexpr FlagOf kNoContextParallel = member<&ModelConfig::no_context_parallel>;
inline constexpr FlagOf kLayerNorms = member<&ModelConfig::layer_norms>;
inline constexpr FlagOf kZeroCentered = member<&ModelConfig::zero_centered_norms>;
inline constexpr FlagOf kQkvBias = member<&ModelConfig::text, &TowerConfig::qkv_bias>;
inline constexpr FlagOf kProjBias = member<&ModelConfig::text, &TowerConfig::proj_bias>;
inline constexpr FlagOf kQkNorm = member<&ModelConfig::text, &TowerConfig::qk_norm>;
inline constexpr FlagOf kOutputGate = member<&ModelConfig::text, &TowerConfig::output_gate>;
inline constexpr FlagOf kSinks = member<&ModelConfig::text, &TowerConfig::sinks>;
inline constexpr FlagOf kGatedMlp = member<&ModelConfig::text, &TowerConfig::gated_mlp>;
inline constexpr FlagOf kSwiglu = member<&ModelConfig::text, &TowerConfig::swiglu>;
inline constexpr FlagOf kExpertBias = member<&ModelConfig::moe, &MoeConfig::expert_bias>;
inline constexpr FlagOf kSharedGate = member<&ModelConfig::moe, &MoeConfig::shared_gate>;
inline constexpr FlagOf kRouterBias = member<&ModelConfig::moe, &MoeConfig::router_bias>;

}  // namespace config_steps
}  // namespace mckpt::impl
