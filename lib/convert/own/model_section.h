// The tensors of the model in a checkpoint of a training run, by the names that the model itself has: without
// what is in front of all of them, and without the wrappers of their modules.
//
//   app.model.model.layers.0._orig_mod.mlp.up_proj.weight    -->   model.layers.0.mlp.up_proj.weight
//   app.optim.state.lm_head.weight.exp_avg                         beside
//   '- section -'
//
// Where the checkpoint keeps the dicts that were saved, the section is the dict of the model (model_dict.h).
// Else the names decide: `model.` is the first part of most names of Hugging Face as well as a section, and a
// section only where every tensor of the model has it and what is behind it shows another one
// (`model.model.layers.0`, `model.lm_head`), or where the names of the model's folder say so.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "convert/own/model_dict.h"
#include "core/base/int.h"

namespace mckpt::impl {

class Store;

// Plain values.
struct SectionOptions {
  ExpectedTensors expected{};  // in the model's folder; empty: they are not known
  bool keep_all = false;       // of several dicts that may be the model all are taken, with their fronts
  std::string model_dict{};    // the dict that is the model, "actor"; empty: it is found
  bool dict_if_there = false;  // it need not be there, as on one side of a comparison
  bool with_adapter = false;   // tensors of an adapter are taken, and all names as they are
  std::set<std::string, std::less<>>
      in_model{};  // names that the other side of a comparison has in its model
};

struct SectionedNames {
  std::vector<NamedTensor> model;  // in the order of the store; every name once
  std::vector<i64> beside;         // states of the optimizer, counters, and buffers that no model saves
  std::vector<i64> floats_beside;  // of these, those that may be weights, as of an average of the model
  std::string section;             // "app.model."; "" for none
  bool dict_taken = false;         // `model` is the dict that SectionOptions::model_dict names
};

// Reads data only where two tensors have the same name without wrappers: equal ones are one tensor. Throws
// kUnaccounted if such two differ, kUnsupportedTensor for adapters and flat parameters, kBadShards for a
// tensor that each rank has in another form, kUnknownFormat if no tensor is one of a model; kUnaccounted for
// several dicts that may be the model, unless all are kept, and for a dict that is named and not there.
SectionedNames sectioned_names(const Store& store, const SectionOptions& options = {});

}  // namespace mckpt::impl
