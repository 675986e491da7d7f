// The dict of a save that the caller names as the model's. Where the format keeps no dicts, the dict is the
// first part of the names; but `model.` is the first part of the names of most models as well:
//
//   `model_dict` actor    actor.model.norm.weight   critic.model.norm.weight    the dict "actor."
//   `model_dict` model    model.model.norm.weight   ema.model.norm.weight       the dict "model."
//   `model_dict` model    model.norm.weight         lm_head.weight              no dict
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "convert/own/model_dict.h"

namespace mckpt::impl {

class Store;

// Refers to what it is made of.
struct NamedDict {
  const std::string& name;                  // "actor", "app.model"
  std::span<const NamedTensor> tensors;     // that may be in it
  std::span<const std::string_view> dicts;  // by tensor of the store: saved_dicts(); empty: not known
  const ExpectedTensors& expected;          // in the model's folder; empty: they are not known

  // What is in front of the names in the dict, "actor."; empty if there is no such dict.
  std::string front() const;
  // Throws kUnaccounted, with the dicts that there are.
  [[noreturn]] void refuse_unknown(const Store& store) const;

 private:
  bool model_is_a_dict() const;
};

}  // namespace mckpt::impl
