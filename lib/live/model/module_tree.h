// ModuleTree: the modules of a live model, found by the names of its parameters. mckpt has no code of the
// model: that decoder.layers.0 is a layer follows from the names and the family's table.
//
//   decoder.layers.0.mixer.conv1d_weight   ""  >  decoder  >  layers  >  0 (a unit)  >  mixer
//
// Module 0 is the model itself, named ""; a module has a smaller number than those inside it.
#pragma once

#include <string>
#include <vector>

#include "core/base/name_hash.h"
#include "mappings/model/expand.h"

namespace mckpt::impl {

// One module. Modules refer to each other and to parameters by number.
struct LiveModule {
  std::string name;  // "decoder.layers.0"
  i32 parent = -1;
  std::vector<i32> parameters;  // its own, including those that it shares with a module before it
  UnitClass unit = UnitClass::kNone;
};

// The tree. Built once, extended by tie(); const functions are thread-safe.
class ModuleTree {
 public:
  explicit ModuleTree(const std::vector<ModelParameter>& parameters);

  // Gives a parameter a second name, so that the module of that name has the parameter too. The parameter's
  // home stays the module of its first name.
  void tie(const std::string& name, i32 parameter);

  i32 size() const { return static_cast<i32>(modules_.size()); }
  const LiveModule& operator[](i32 module) const { return modules_[static_cast<std::size_t>(module)]; }
  i32 find(const std::string& name) const;  // throws kNoSuchTensor
  i32 home_of(i32 parameter) const { return homes_[static_cast<std::size_t>(parameter)]; }
  bool contains(i32 outer, i32 inner) const;  // true also if the two are the same
  i32 layer_around(i32 module) const;         // the innermost unit that contains the module; -1: none

  // The parameters of the module and of all modules inside it, each once, in order of registration.
  std::vector<i32> parameters_below(i32 module) const;

 private:
  i32 module_named(std::string_view name);

  std::vector<LiveModule> modules_;
  std::vector<i32> homes_;  // by parameter
  NameMap<std::string, i32> by_name_;
};

}  // namespace mckpt::impl
