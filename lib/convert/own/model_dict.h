// Which of the dicts of a save is the model's state dict. The structure of the save decides, and not whether
// the names are known:
//
//   {"model": {"bert.pooler.w": T, ...}, "loss": T, "opt": {"state": {"a": T}}}
//     '-- a dict with keys of modules --'  ------ beside the model ------
//
// Of several such dicts the one is taken that has the name of a model, or else that has the tensors of the
// model's folder.
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
  bool known = false;                   // false: the structure does not decide
  std::string front;  // of the names in the dict, "app.model."; "": the dict that was saved itself
  // Where not known: the dicts that may be the model, if there are several
  std::vector<std::string> candidates;
};

// `dicts`: by tensor of the store, what saved_dicts() says, not empty. `names`: of the tensors that may be
// the model's; what is cut off their fronts is cut off `dicts` too.
ModelDict model_dict(const Store& store, std::span<const NamedTensor> names,
                     std::span<const std::string_view> dicts, const ExpectedTensors& expected);

// How many of the names, without their first `bytes`, the model's folder has.
i64 count_expected(std::span<const NamedTensor> names, std::size_t bytes, const ExpectedTensors& expected);

}  // namespace mckpt::impl
