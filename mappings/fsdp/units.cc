// Layers give their units their numbers, and so do experts: they are a group of their own anyway. v1 gives a
// stack the number of its first layer. Layers in a stack may be units too with v2, which numbers stacks
// behind all layers.
#include "mappings/fsdp/units.h"

#include "core/fsdp/param_groups.h"
#include "mappings/family.h"
#include "mappings/fsdp/groups.h"
#include "mappings/fsdp/setup.h"
#include "mappings/model/parameter.h"
#include "mappings/model/stacks.h"

namespace mckpt::impl {
namespace {

// More layers than any model has.
constexpr i64 kFirstStack = i64{1} << 32;

// The stack of all layers that are in no group.
constexpr std::string_view kDecoder = "decoder";

// The stack that owns what no unit inside it owns; "": there is none. pre: the model is a hybrid.
std::string_view innermost_stack(const ModelParameter& p) {
  if (p.section->tower != Tower::kText) return "";
  if (p.unit >= 0) return stack_name(p);
  const bool inside = p.name.starts_with(kDecoder) && p.name.substr(kDecoder.size()).starts_with('.');
  return inside ? kDecoder : "";
}

// "decoder.layers.0.mlp.experts" of "decoder.layers.0.mlp.experts.linear_fc1.weight3".
std::string experts_name(const ModelParameter& p) {
  constexpr std::string_view kExperts = ".experts";
  return p.name.substr(0, p.name.find(kExperts) + kExperts.size());
}

}  // namespace

UnitOwners::Owner UnitOwners::owner(const ModelParameter& p) {
  if (setup_.engine == Engine::kV2) return owner_under_v2(p);
  // A stack that is a unit owns the layers inside it, whatever their class is.
  if (setup_.hybrid_stack_units && p.stack >= 0) return {p.stack, Kind::kStack};
  if (is_unit(p.unit_class, setup_)) return {p.unit, Kind::kLayer};
  return {kNoUnit, Kind::kNone};
}

UnitOwners::Owner UnitOwners::owner_under_v2(const ModelParameter& p) {
  if (is_unit(p.unit_class, setup_)) return {p.unit, Kind::kLayer};
  if (p.unit >= 0 && p.expert()) return {p.unit, Kind::kExperts};
  if (!setup_.hybrid_stack_units) return {kNoUnit, Kind::kNone};
  const std::string_view stack = innermost_stack(p);
  if (stack.empty()) return {kNoUnit, Kind::kNone};
  const i64 next = kFirstStack + std::ssize(stacks_);
  return {stacks_.try_emplace(std::string(stack), next).first->second, Kind::kStack};
}

std::map<i64, UnitModule> UnitOwners::modules(const std::vector<ModelParameter>& parameters) {
  std::map<i64, UnitModule> out;
  for (const ModelParameter& p : parameters) {
    if (p.buffer() || p.tied_to >= 0) continue;
    const Owner of = owner(p);
    if (of.kind == Kind::kNone) continue;
    auto [at, is_new] = out.try_emplace(of.number, UnitModule());
    UnitModule& module = at->second;
    if (module.layer == UnitClass::kNone) module.layer = p.unit_class;
    if (!is_new) continue;
    module.stack = of.kind == Kind::kStack, module.experts = of.kind == Kind::kExperts;
    if (module.experts)
      module.name = experts_name(p);
    else if (!module.stack)
      module.name = layer_name(p);
    else
      module.name = p.unit >= 0 ? stack_name(p) : kDecoder;
  }
  return out;
}

}  // namespace mckpt::impl
