// Builds the tree from the names of parameters: every part of a name before a dot is a module.
#include "live/model/module_tree.h"
#include "core/base/error.h"
#include "core/hybrid/spellings.h"
#include "mappings/model/parameter.h"

#include <algorithm>

namespace mckpt::impl {
namespace {

std::string_view parent_of(std::string_view name) {
  std::size_t dot = name.rfind('.');
  return dot == name.npos ? std::string_view() : name.substr(0, dot);
}

// The layer of a parameter. The row of the family's table, or its other name, is the part of the name inside the
// layer, so the layer's name is the parameter's name without as many words.
std::string_view layer_of(const ModelParameter& p) {
  std::string_view name = p.name, row = p.row->megatron;
  std::optional<Respelt> other = other_name(row);
  if (other && name.ends_with(other->name)) row = other->name;
  for (std::size_t words = std::ranges::count(row, '.') + 1; words > 0; words--) name = parent_of(name);
  return name;
}

}  // namespace

// The layer of a parameter that belongs to a unit becomes a unit of the parameter's class.
ModuleTree::ModuleTree(const std::vector<ModelParameter>& parameters) {
  modules_.push_back({});
  by_name_.emplace("", 0);
  for (i32 i = 0; i < static_cast<i32>(parameters.size()); i++) {
    const ModelParameter& p = parameters[i];
    if (p.unit >= 0) {
      i32 layer = module_named(layer_of(p));
      modules_[layer].unit = p.unit_class;
    }
    homes_.push_back(module_named(parent_of(p.name)));
    modules_[homes_.back()].parameters.push_back(i);
  }
}

// The module of that name; it and the modules around it are added if they are missing.
i32 ModuleTree::module_named(std::string_view name) {
  if (auto known = by_name_.find(std::string(name)); known != by_name_.end()) return known->second;
  i32 parent = module_named(parent_of(name));
  i32 module = size();
  modules_.push_back({std::string(name), parent, {}, UnitClass::kNone});
  by_name_.emplace(std::string(name), module);
  return module;
}

void ModuleTree::tie(const std::string& name, i32 parameter) {
  i32 module = module_named(parent_of(name));
  modules_[module].parameters.push_back(parameter);
}

i32 ModuleTree::find(const std::string& name) const {
  auto at = by_name_.find(name);
  if (at == by_name_.end())
    throw Error(Code::kNoSuchTensor, "the model has no such module").found(escaped(name));
  return at->second;
}

bool ModuleTree::contains(i32 outer, i32 inner) const {
  while (inner > outer) inner = (*this)[inner].parent;
  return inner == outer;
}

i32 ModuleTree::layer_around(i32 module) const {
  while (module >= 0 && (*this)[module].unit == UnitClass::kNone) module = (*this)[module].parent;
  return module;
}

// Modules inside `module` have larger numbers, but others may be between them.
std::vector<i32> ModuleTree::parameters_below(i32 module) const {
  std::vector<i32> out;
  for (i32 m = module; m < size(); m++)
    if (contains(module, m))
      out.insert(out.end(), (*this)[m].parameters.begin(), (*this)[m].parameters.end());
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace mckpt::impl
