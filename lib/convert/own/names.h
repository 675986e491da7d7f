// A checkpoint of a training program under the names that the model has in its Hugging Face folder. Whatever
// saved it, the result has the tensors of the model alone, each as the folder has it:
//
//   app.model.model.layers.0._orig_mod.mlp.up_proj.weight     model.layers.0.mlp.up_proj.weight
//   app.model.model.layers.1.mlp.experts.gate_up_proj   -->   model.layers.1.mlp.experts.0.up_proj.weight ...
//   layers.0.attention.wo.weight             (torchtitan)     model.layers.0.self_attn.o_proj.weight
//   optimizer.state.lm_head.weight.exp_avg                    beside
//
// Programs whose names are known: torch's FSDP, accelerate, Trainer, torchtune and NeMo-RL with models of
// transformers; torchtitan (docs/formats/own_names.md).
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "convert/own/disk_names.h"
#include "hf/config/numbers.h"
#include "hf/config/tower_numbers.h"
#include "io/store/store.h"

namespace mckpt::impl {

struct HfConfig;

// The model from which tensors without shapes get their shapes (convert/own/flat_shapes.h).
struct FlatModel {
  TensorShapes shapes{};  // in the model's folder; empty: they are not known
  std::string model_type{};
};

struct OwnNamesOptions {
  const HfConfig* config = nullptr;  // of the model, if it is known (lib/hf/config/json.h)
  std::string model_type{};          // of a config that no table reads
  std::string architecture{};        // of any config: the class of the model
  TowerNumbers numbers{};            // of any config; zeros if there is none
  ConfigNumbers config_numbers{};    // of any config
  bool stacks =
      false;  // the model's folder has the experts of a layer as one tensor, as the training program has
  bool as_saved = false;  // without sections and wrappers, and otherwise the names and tensors of the source
  ExpectedTensors expected{};  // in the model's folder; empty: they are not known
  std::string model_dict{};    // as in SectionOptions
  bool dict_if_there = false;
  bool with_adapter = false;                      // as in SectionOptions
  std::set<std::string, std::less<>> in_model{};  // as in SectionOptions
  FlatModel flat{};                               // for a store that is flat
};

// A fact of the store whose dict the caller named: which it was.
inline constexpr std::string_view kModelDictFact = "model_dict";

struct OwnNames {
  std::unique_ptr<Store>
      store;  // only the tensors of the model, under the names that its Hugging Face folder has
  std::vector<std::string> beside;         // names of the source's other tensors: optimizer states, counters
  std::vector<std::string> floats_beside;  // of these, those that may be weights
  std::string section;      // what was in front of every model tensor: "app.model."; "" for none
  std::string convention;   // whose names they were: "transformers", "torchtitan llama3"
  bool dict_taken = false;  // these are the tensors of the dict that `model_dict` names
};

// Takes any store that has the tensors of a model under the model's own names, or under torchtitan's names. A
// tied output layer is kept (convert/open/own_model.h leaves it out). Throws what sectioned_names(),
// with_shapes(), disk_tensors() and titan_tensors() throw; kUnaccounted if two tensors become one.
OwnNames own_names(std::unique_ptr<Store> store, const OwnNamesOptions& options);

// By tensor of a checkpoint that is copied whole: whether the tensor gets the type that the user chose. The
// tensors of every dict that may be the model get this type. States of the optimizer in such a dict, and
// tensors beside the dicts, keep their types: an average of the model does. Throws what sectioned_names()
// throws.
std::vector<bool> takes_type(const Store& store);

// How the names of two checkpoints of a model under `as_saved` fit each other.
enum class CommonNames : u8 {
  kAll,   // they are the same
  kMost,  // more than half are the same: one side lacks some tensors, such as a head that the model ties
  kFew,   // one side alone has torchtitan's names or stacks of experts: only the config connects the two
};
// Throws what sectioned_names() throws.
// `model_dict`: of either side, if it is there.
CommonNames common_names(const Store& one, const Store& other, const std::string& model_dict = "");

// Names of the model's tensors that would be beside it if they were not in its dict, such as "steps". None if
// it has no model.
std::set<std::string, std::less<>> counters_of_model(const Store& store);

// Whether two checkpoints have the names of one model, at least as `common` says, without wrappers and
// without what is beside it; false too if one has no model. `whole`: nothing is beside the model on either
// side.
bool are_of_one_model(const Store& one, const Store& other, CommonNames common, bool whole);

// Whether two checkpoints have the names of one model, at least as `common` says, in different sections.
// False too if one has no model.
bool differ_in_section(const Store& one, const Store& other, CommonNames common);

}  // namespace mckpt::impl
