// Keeps the outermost reader around each parameter, and all that are elsewhere.
#include "live/model/direct_reads.h"

#include <algorithm>

#include "core/base/error.h"
#include "live/model/module_tree.h"
#include "mappings/model/parameter.h"
#include "mappings/model/stacks.h"

namespace mckpt::impl {
namespace {

// The modules that read the parameter. A row without a layer may name a module of every layer: those that
// there are.
std::vector<i32> readers_of(const ModelParameter& p, const ModuleTree& tree) {
  if (p.row->gathered_with == kOwnLayer) return {tree.find(std::string(layer_name(p)))};
  std::vector<i32> modules;
  for (const std::string& name : p.gathered_with)
    if (i32 module = tree.known(name); module >= 0) modules.push_back(module);
  if (modules.empty() && !p.row->gathered_with.empty())
    throw Error(Code::kBadMap, "a row gathers its parameter with a module that the model does not have")
        .tensor(p.name)
        .found(escaped(p.row->gathered_with));
  return modules;
}

}  // namespace

DirectReads::DirectReads(const std::vector<ModelParameter>& parameters, const ModuleTree& tree)
    : tree_(tree), around_(parameters.size(), -1) {
  for (i32 p = 0; p < static_cast<i32>(parameters.size()); p++)
    for (i32 module : readers_of(parameters[p], tree)) {
      i32& around = around_[p];
      if (!tree.contains(module, tree.home_of(p)))
        elsewhere_.push_back({module, p});
      else if (around < 0 || module < around)
        around = module;
    }
}

bool DirectReads::around(i32 module, i32 parameter) const {
  i32 reader = around_[parameter];
  return reader >= 0 && tree_.contains(reader, module);
}

}  // namespace mckpt::impl
