// Finds stacks by the names of layers: a stack has its layers in a list, so its name is the layer's without
// "layers" and the number.
//
//   decoder.layers.0.layers.1   in   decoder.layers.0        decoder.layers.3   in   decoder
#include "mappings/model/stacks.h"

#include <algorithm>
#include <string>

#include "core/base/name_hash.h"
#include "core/base/text.h"
#include "core/hybrid/pattern.h"
#include "core/hybrid/spellings.h"
#include "mappings/family.h"
#include "mappings/model/grouped_names.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

std::string_view without_last_words(std::string_view name, i64 words) {
  for (; words > 0; words--) {
    std::size_t dot = name.rfind('.');
    name = dot == name.npos ? std::string_view() : name.substr(0, dot);
  }
  return name;
}

// The stack of a group is itself in the list of layers.
bool is_group(std::string_view stack) { return stack.starts_with("decoder.layers."); }

}  // namespace

// The row of the family's table, or its other name, is the part of the name inside the layer.
std::string_view layer_name(const ModelParameter& p) {
  std::string_view row = p.row->megatron;
  std::optional<Respelt> other = other_name(row);
  if (other && p.name.ends_with(other->name)) row = other->name;
  return without_last_words(p.name, std::ranges::count(row, '.') + 1);
}

std::string_view stack_name(const ModelParameter& p) { return without_last_words(layer_name(p), 2); }

void number_stacks(const ModelConfig& model, const LayerPattern* groups,
                   std::vector<ModelParameter>& parameters) {
  if (hybrid_pattern(model).empty()) return;
  bool grouped = groups && groups->has_groups();
  NameMap<std::string, i64> stacks;
  for (ModelParameter& p : parameters)
    if (p.unit >= 0 && p.section->tower == Tower::kText && (!grouped || is_group(stack_name(p))))
      p.stack = stacks.try_emplace(std::string(stack_name(p)), p.unit).first->second;
  if (grouped) return;
  // The final norm is in the stack, and in none of its layers.
  for (ModelParameter& p : parameters)
    for (const auto& [name, number] : stacks)
      if (p.unit < 0 && p.name.starts_with(cat(name, "."))) p.stack = number;
}

}  // namespace mckpt::impl
