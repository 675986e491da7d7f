// The optimizer of one rank of a Megatron run, where it is not distributed, as its file has it: torch's own
// state dict, with the main weights of parameters in bf16 beside it. With expert parallelism there are two
// optimizers, the second one for experts:
//
//   optimizer.optimizer.state.7.exp_avg              number 7
//   optimizer.optimizer.param_groups                 a list of groups, each with its numbers and options
//   optimizer.fp32_from_fp16_params.0.3              the main weights of the 4th parameter in bf16 of group 0
//   optimizer.state.7.exp_avg                        of a run in fp32
//   optimizer.1.optimizer.state.7.exp_avg            the second of two optimizers
//
// Numbers are given to parameters by convert/own/number_matching.h. Nothing is read but the groups.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "convert/own/number_matching.h"
#include "core/base/int.h"
#include "io/pickle/value.h"

namespace mckpt::impl {

class Store;

// The optimizer's states of one parameter.
struct ClassicStates {
  struct State {
    i64 tensor;  // of the store
    std::string kind;
  };
  std::vector<State> states;           // main weights are of the kind "fp32_param"
  std::optional<PickleValue> options;  // of its group, a dict; nothing of a parameter that was not trained
  i64 step = -1;                       // the tensor with the count of steps; -1: it is one of the options
};

// The optimizer of one file. The store outlives it.
class ClassicOptimizer {
 public:
  // `front`: what the names in the file begin with, "mp_rank_00/". `tensors`, `objects`: the optimizer's own.
  // Throws kNotHeld for a tensor of a form that is not known.
  ClassicOptimizer(const Store& store, std::string_view front, std::span<const i64> tensors,
                   std::span<const i64> objects);

  // By parameter. `order`: the file's parameters, in the order in which the model has them. `half`: whether a
  // parameter has main weights. Throws kNotHeld if numbers cannot be given to parameters without doubt, or
  // groups have other main weights.
  std::vector<ClassicStates> of(const std::vector<OrderedParameter>& order,
                                const std::vector<bool>& half) const;

 private:
  struct Group {
    NumberGroup numbers;
    PickleValue options;
    std::vector<i64> main;  // tensors of main weights; -1: there is none
  };
  void take_tensor(i64 tensor, std::string_view name);
  void take_groups(i64 object, std::string_view name);
  [[noreturn]] void refuse(std::string why) const;

  const Store& store_;
  std::string_view front_;
  NameMap<std::string, ClassicStates> states_;  // by number
  NameMap<std::string, std::vector<i64>> shapes_;
  NameMap<std::string, std::vector<i64>> main_;  // by group
  std::vector<Group> groups_;
  std::vector<std::shared_ptr<const PickleValue>> read_;  // what the groups refer to
};

}  // namespace mckpt::impl
