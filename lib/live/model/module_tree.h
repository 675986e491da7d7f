// ModuleTree: the modules of a live model, found by the names of its parameters. mckpt has no code of the
// model: that decoder.layers.0 is a layer follows from the names and the family's table.
//
//   decoder.layers.0.mixer.conv1d_weight   ""  >  decoder  >  layers  >  0 (a unit)  >  mixer
//
// Module 0 is the model itself, named ""; a module has a smaller number than those inside it.
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"
#include "core/base/name_hash.h"

namespace mckpt::impl {

enum class UnitClass : u8;
struct ModelParameter;

// One module. Modules refer to each other and to parameters by number.
struct LiveModule {
  std::string name;  // "decoder.layers.0"
  i32 parent = -1;
  std::vector<i32> parameters;  // its own, including those that it shares with a module before it
  UnitClass unit{};             // the class of a layer; kNone
};

// The tree. Built once, extended by tie(); const functions are thread-safe.
class ModuleTree {
 public:
  explicit ModuleTree(const std::vector<ModelParameter>& parameters);

  // Gives a parameter a second name, so that the module of that name has the parameter too. The parameter's
  // home stays the module of its first name.
  void tie(const std::string& name, i32 parameter);

  i32 size() const { return static_cast<i32>(modules_.size()); }
  const LiveModule& operator[](i32 module) const { return modules_[module]; }
  i32 find(const std::string& name) const;  // throws kNoSuchTensor
  i32 known(std::string_view name) const;   // -1: there is no such module
  i32 home_of(i32 parameter) const { return homes_[parameter]; }
  bool contains(i32 outer, i32 inner) const;  // true also if the two are the same

  // The layers inside the module, which is not one itself.
  std::vector<i32> layers_inside(i32 module) const;
  // The parameters of the module and of all modules inside it, each once, in order of registration.
  std::vector<i32> parameters_below(i32 module) const;

 private:
  i32 module_named(std::string_view name);

  std::vector<LiveModule> modules_;
  std::vector<i32> homes_;  // by parameter
  NameMap<std::string, i32> by_name_;
};

}  // namespace mckpt::impl
