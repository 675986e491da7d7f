// The check "model" of `verify`: whether a Hugging Face folder has the tensors that its config.json promises,
// with their shapes. Every other check looks at the files alone and does not notice a weight that is in none.
//
//   pass  model    45 tensors      config.json has them all
//   warn  model    45 tensors      the same, but an output layer that config.json ties has values of its own
//   FAIL  model    44 tensors      tensors against config.json
//         problem[MC2005]: the tensors and the model do not match: 1 missing: model.norm.weight
//   -     model    not compared with config.json: the model type is unknown
//
// The expected tensors belong to the class that `architectures` names: for a class with another head than the
// family's table, the tensors that hf/folder/model_class.h says, though no conversion takes such a model.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/error_code.h"

namespace mckpt::impl {

class Store;
struct Finding;
struct VerifyReport;

// Adds the check if the store is a folder of safetensors files with a config.json and nothing is wrong with
// the files themselves; returns whether it is one.
bool check_model_folder(const Store& store, int threads, VerifyReport& report);

// Adds the check of a checkpoint under the model's own names, with a config.json beside it: opened as an
// export opens it, which compares names and shapes with the model of the config. `odd`: the warning of a head
// under the names of the files, for which opening the model may have one under the model's names. Throws what
// tensors of another model throw.
void check_own_names(const Store& store, int threads, std::vector<Finding> odd, VerifyReport& report);

// Adds the check of a checkpoint of any kind against the model of a folder `assets`: the names and shapes
// that an export asks for. Files of Megatron's ranks have the check "ranks" instead. `model_dict`: the dict
// of a save that is the model, as in OwnModelOptions; empty: it is found. `accept`: as in CheckpointOptions.
// pre: the folder has a config.json. Throws kUsage for a dict of a checkpoint whose dicts are not looked at.
//
//   pass  model    24 tensors      config.json has them all; names and shapes, not the settings of config.json
//   warn  model    24 tensors      the same, but the checkpoint's own config.json has another rope_theta
//   FAIL  model    23 tensors      tensors against config.json
//         problem[MC2005]: the tensors and the model do not match: 1 missing: model.norm.weight
void check_by_assets(const Store& store, const std::string& assets, const std::string& model_dict,
                     std::span<const Code> accept, int threads, VerifyReport& report);

}  // namespace mckpt::impl
