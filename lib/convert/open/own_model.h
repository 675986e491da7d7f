// A checkpoint whose tensors have the model's own names, opened as the model of a Hugging Face folder: which
// of its tensors are written, and which are not.
//
//   checkpoint                           result
//   model.layers.0.mlp.up_proj.weight    model.layers.0.mlp.up_proj.weight
//   lm_head.weight                       (a copy of the embedding, which the folder does not have)
//   optimizer.state. ...                 (beside the model)
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error_code.h"
#include "core/base/int.h"
#include "core/base/notes.h"
#include "hf/folder/model_folder.h"
#include "io/safetensors/original.h"
#include "io/store/finding.h"

namespace mckpt::impl {

class AdaptedStore;
class Store;

// Whether the tensors have the names of the model itself: true unless they are names of Megatron's modules or
// of one of Megatron's formats.
bool has_own_names(const Store& store);

// Plain values.
struct OwnModelOptions {
  std::string source{};                 // as the user named it
  std::optional<std::string> assets{};  // a folder with config.json; none: where training frameworks put it
  // A folder that tensors saved flat have their shapes from; none: `assets`
  std::optional<std::string> shapes{};
  // The dict of a save that is the model, where several may be: "actor", "state.policy". Empty: it is found
  // (convert/own/model_dict.h)
  std::string model_dict{};
  std::vector<Code> accept{};               // codes of damage that is accepted
  bool (*apart)(const Finding&) = nullptr;  // damage that the caller reports, which is not refused
  bool complete = true;                     // without config.json the source is refused; a missing tensor too
  bool keep_names = false;                  // names are the source's: no config.json is looked for beside it
  bool dict_if_there = false;               // as in SectionOptions
  std::set<std::string, std::less<>> in_model{};  // as in SectionOptions
  // A model with an adapter of PEFT around it is read as its base with the adapter in it; false: its tensors
  // are those that were saved.
  bool merge_adapter = true;
  // A head that config.json ties, with values of its own, is refused; true: it is a tensor of the model, and
  // the result says so.
  bool keep_unlike_heads = false;
  int threads = 1;  // that compare tied tensors
};

// A tensor of the result.
struct OwnTensor {
  std::string name;
  i32 tensor = 0;     // of the store
  bool tied = false;  // has the items of that tensor a second time
};

// The open model. A value that owns its store.
struct OwnModel {
  std::unique_ptr<Store> store;  // the model's tensors under their names in a Hugging Face folder
  std::vector<Finding> oddities;
  const AdaptedStore* adapted = nullptr;  // in `store`, where an adapter in the checkpoint was merged
  ModelFolder folder;
  std::vector<OwnTensor> tensors;  // of the result, in the order in which they were saved
  std::vector<std::pair<i32, i32>>
      copies{};                       // tensors of the store that are left out, and those that they repeat
  std::vector<std::string> unlike{};  // "lm_head.weight differs from ...": heads that were kept
  std::string section, convention;
  bool dict_taken = false;  // as in OwnNames
  std::string
      judged_by{};  // the source of the list of its tensors, "DIR/model.safetensors.index.json"; "": none
  std::optional<SafetensorsOriginal> original{};  // the files of the model's own folder, if they are known
  std::vector<std::string> beside;                // names of tensors that are not the model's
  std::vector<std::string> floats_beside;         // of these, those that may be weights
  i64 objects = 0;  // of the checkpoint: no Hugging Face folder has a place for them
  Notes notes;
};

// Refuses a dict that is named of a source whose dicts are not looked at. Throws kUsage.
void refuse_model_dict(const std::string& model_dict, const std::string& source);

// Names the tensors and objects that are not the model's.
void note_left_out(Notes& notes, const OwnModel& model);

}  // namespace mckpt::impl
