// The tensors of the model in a checkpoint of a training run, by the names that the model itself has: without
// what is in front of all of them, and without the wrappers of their modules.
//
//   app.model.model.layers.0._orig_mod.mlp.up_proj.weight    -->   model.layers.0.mlp.up_proj.weight
//   app.optim.state.lm_head.weight.exp_avg                         beside
//   '- section -'
//
// `model.` is the first part of most names of Hugging Face as well as a section. It is a section only where
// every tensor of the model has it and what is behind it shows another one: `model.model.layers.0`,
// `model.lm_head`.
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;

// A tensor of the model: its number in the store, and its name in the model.
struct NamedTensor {
  i64 tensor = 0;
  std::string name;
};

struct SectionedNames {
  std::vector<NamedTensor> model;  // in the order of the store; every name once
  std::vector<i64> beside;         // states of the optimizer, counters, and buffers that no model saves
  std::string section;             // "app.model."; "" for none
};

// Reads data only where two tensors have the same name without wrappers: equal ones are one tensor. Throws
// kUnaccounted if such two differ, kUnsupportedTensor for adapters and flat parameters, kBadShards for a
// tensor that each rank has in another form, kUnknownFormat if no tensor is one of a model.
SectionedNames sectioned_names(const Store& store);

}  // namespace mckpt::impl
