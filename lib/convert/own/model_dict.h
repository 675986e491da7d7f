// Which of the dicts of a save is the model's state dict. The structure of the save decides, and not whether
// the names are known:
//
//   {"model": {"bert.pooler.w": T, ...}, "loss": T, "opt": {"state": {"a": T}}}
//     '-- a dict with keys of modules --'  ------ beside the model ------
//
// If there are several such dicts, the one is taken that has the name of a model, or else that has the
// tensors of the model's folder. Where two of them have names of models and all tensors of the model, none
// is.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "core/base/name_hash.h"

namespace mckpt::impl {

class Store;

// A tensor of the model: its number in the store, and its name in the model.
struct NamedTensor {
  i64 tensor = 0;
  std::string name;
};

// The tensors that the model's folder has, with their dimensions if they are known.
using ExpectedTensors = NameMap<std::string, std::optional<std::vector<i64>>>;

struct ModelDict {
  bool known = false;  // false: the structure does not decide
  std::string front;   // of the names in the dict, "app.model."; "": the dict that was saved itself
  // Where not known: the dicts that may be the model, if there are several
  std::vector<std::string> candidates;
};

// `dicts`: by tensor of the store, what saved_dicts() says, not empty. `names`: of the tensors that may be
// the model's; what is cut off their fronts is cut off `dicts` too.
ModelDict model_dict(const Store& store, std::span<const NamedTensor> names,
                     std::span<const std::string_view> dicts, const ExpectedTensors& expected);

// How many of the names, without their first `bytes`, the model's folder has.
i64 count_expected(std::span<const NamedTensor> names, std::size_t bytes, const ExpectedTensors& expected);

// The dict of a save that the caller names as the model's. Where the format keeps no dicts, the dict is the
// first part of the names; but `model.` is the first part of the names of most models as well:
//
//   `model_dict` actor    actor.model.norm.weight   critic.model.norm.weight    the dict "actor."
//   `model_dict` model    model.model.norm.weight   ema.model.norm.weight       the dict "model."
//   `model_dict` model    model.norm.weight         lm_head.weight              no dict
//
// Refers to what it is made of.
struct NamedDict {
  const std::string& name;                  // "actor", "app.model"
  std::span<const NamedTensor> tensors;     // that may be in it
  std::span<const std::string_view> dicts;  // by tensor of the store: saved_dicts(); empty: not known
  const ExpectedTensors& expected;          // in the model's folder; empty: they are not known

  // The text in front of the names in the dict, "actor."; empty if there is no such dict.
  std::string front() const;
  // Throws kUnaccounted, with the dicts that there are.
  [[noreturn]] void refuse_unknown(const Store& store) const;

 private:
  bool model_is_a_dict() const;
};

}  // namespace mckpt::impl
