// OptimizerContent: what a save says about each parameter that was trained, without a format. One function
// fills it for each way in which programs write an optimizer (read_content.h), and the lint asks nothing else
// (lint.h).
//
//   groups       0: wd_mult 1.0, weight_decay 0.1, lr 0.2      1: wd_mult 0.0, weight_decay 0.0, lr 0.2
//   parameters   decoder.layers.0.mlp.linear_fc1.weight   [28, 12]   group 0   exp_avg, exp_avg_sq
//                decoder.final_layernorm.weight           [12]       group 1   exp_avg, exp_avg_sq
//
// Where groups list numbers in place of names, and nothing says which parameter has which, the number is the
// name.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

struct OptimizerContent {
  // Options are as Python prints them; a number has its shortest form, "7" and not "7.0".
  using Options = std::map<std::string, std::string>;
  struct Group {
    std::string name;  // as a message says it: "group 0", "group 1 of optimizer 1"
    Options options{};
    i64 optimizer = 0;  // of several, each with groups of its own
  };
  struct Parameter {
    std::string name;
    std::vector<i64> dims{};            // of the whole parameter
    bool has_dims = false;              // false: `dims` is not known
    bool in_model = false;              // the save has its weight
    i64 group = -1;                     // -1: none, or groups do not say their parameters
    std::vector<std::string> states{};  // "exp_avg", each once
    std::string step{};                 // its own count of steps; "": it is one of the group's options
    std::vector<i64> tensors{};         // of the store: its states
    bool again = false;  // another tensor-parallel rank's part of a parameter that is there too
  };

  std::vector<Group> groups{};
  std::vector<Parameter> parameters{};
  bool lists = false;      // groups say which parameters they have
  bool scheduled = false;  // the schedule of a Megatron run has set the options of groups at least once
  bool buckets = false;    // some states are in buckets, which do not say their parameters
  bool model = false;      // the save has the weights of the model, under the names of `parameters`

  bool empty() const { return groups.empty() && parameters.empty(); }
  // The value of an option of the parameter: its own, or its group's. "": it has none.
  std::string option(const Parameter& p, const std::string& name) const {
    if (name == "step" && !p.step.empty()) return p.step;
    if (p.group < 0) return "";
    auto at = groups[p.group].options.find(name);
    return at == groups[p.group].options.end() ? "" : at->second;
  }
};

}  // namespace mckpt::impl
