// Builds the tree from the names of parameters: every part of a name before a dot is a module.
#include "live/model/module_tree.h"
#include "core/base/error.h"
#include "mappings/model/parameter.h"
#include "mappings/model/stacks.h"

#include <algorithm>

namespace mckpt::impl {
namespace {

std::string_view parent_of(std::string_view name) {
  std::size_t dot = name.rfind('.');
  return dot == name.npos ? std::string_view() : name.substr(0, dot);
}

}  // namespace

// The layer of a parameter becomes a layer of the parameter's class.
ModuleTree::ModuleTree(const std::vector<ModelParameter>& parameters) {
  modules_.push_back({});
  by_name_.emplace("", 0);
  for (i32 i = 0; i < static_cast<i32>(parameters.size()); i++) {
    const ModelParameter& p = parameters[i];
    if (p.unit >= 0) modules_[module_named(layer_name(p))].unit = p.unit_class;
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

i32 ModuleTree::known(std::string_view name) const {
  auto at = by_name_.find(std::string(name));
  return at == by_name_.end() ? -1 : at->second;
}

bool ModuleTree::contains(i32 outer, i32 inner) const {
  while (inner > outer) inner = (*this)[inner].parent;
  return inner == outer;
}

std::vector<i32> ModuleTree::layers_inside(i32 module) const {
  std::vector<i32> out;
  for (i32 m = module + 1; m < size(); m++)
    if ((*this)[m].unit != UnitClass::kNone && contains(module, m)) out.push_back(m);
  return out;
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
