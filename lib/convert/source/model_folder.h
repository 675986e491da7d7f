// The Hugging Face model that a checkpoint with the model's own names belongs to: the folder with config.json
// and tokenizer, and the names that its tensors have, as far as they are known. Nothing here needs a table of
// the model.
//
//   `assets`                                 a folder that the user names
//   ckpt/huggingface/config.json             verl, beside the files of the ranks
//   ckpt/config.json                         Trainer and accelerate: in the checkpoint's folder ...
//   ckpt/pytorch_model_fsdp_0/.metadata      ... or in the one around it
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "convert/source/model_class.h"
#include "convert/views/disk_names.h"
#include "core/base/int.h"
#include "hf/adapter/amended_config.h"
#include "hf/config_json.h"
#include "hf/config_numbers.h"
#include "hf/tower_numbers.h"
#include "io/copy/side_files.h"
#include "io/safetensors/original.h"

namespace mckpt::impl {

class Notes;
class Store;
struct OpenOptions;

// What is known of the model. A value.
struct ModelFolder {
  std::string path;                // the folder with config.json; "": none was found
  bool of_a_run = false;           // the folder has other files of a training run too
  std::optional<HfConfig> config;  // none: there is no config.json, or of a model that no table knows
  std::string model_type;          // as config.json has it
  std::string architecture;        // the first of its architectures; "" if it has none
  TowerNumbers numbers{};          // of config.json; zeros for what it does not say
  ConfigNumbers config_numbers{};  // of config.json
  std::optional<bool> tied;        // tie_word_embeddings of config.json
  i64 labels = 2;                  // of a classifier
  AmendedConfig amended{};  // by an adapter in the store: `config` and `tied` have it, config.json has not

  // Config, tokenizer, code. pre: path is not empty.
  SideFiles files(const OpenOptions& opening) const;
};

// Looks in `assets` if it is given, else in the folders that training frameworks use. Throws kNotFound for
// `assets` without config.json, kBadJson for a config that cannot be read.
ModelFolder find_model_folder(const Store& store, const std::string& source,
                              const std::optional<std::string>& assets);

// The folder that find_model_folder() finds without `assets`: the first of the usual ones that has a config.json, which
// is not read.
ModelFolder model_folder_beside(const Store& store, const std::string& source);

// Throws kNotFound if the folder of the model has no config.json.
void require_config(const std::string& assets, const OpenOptions& opening);

// The tensors that the model's Hugging Face folder has.
struct KnownTensors {
  using Tensor = KnownTensor;
  std::vector<Tensor> tensors;                    // in the order of the folder; empty: they are not known
  std::string origin;                             // for messages: "DIR/model.safetensors.index.json"
  std::string shapes_origin{};                    // of the shapes, if that is something else
  std::optional<SafetensorsOriginal> original{};  // the files, if the headers are known
  bool of_shards = false;  // of ranks: what the lost ones had is in none of the others
};

// The tensors that the files of the folder list. The first that the folder has is asked: safetensors headers,
// their index, mckpt's own list. Without any of them, or without a folder, the result is empty. Throws what
// reading the headers throws.
KnownTensors listed_tensors(const ModelFolder& folder, const OpenOptions& opening);

// The same of a store with an adapter in it, which may have other shapes and tensors that its base has not.
void amend(KnownTensors& own, const Store& store);

// The shapes that the folder's files state, or else those of the family's table with the config. `own`: what
// listed_tensors() returned for the folder.
TensorShapes known_shapes(const ModelFolder& assets, const KnownTensors& own);

// Whether the folder has the experts of a layer as one tensor.
bool has_stacked_experts(const KnownTensors& own);

// The tensors that the folder lists, or those of the family's table with the class that config.json names; of
// the forms in which a family stores experts, the one that `store` has. A head in `store` counts more than the
// name of a class with a language head, since programs that train a classifier from a language model leave its
// config as it was. What the judgement rests on becomes a note. `own`: what listed_tensors()
// returned for the folder. pre: `store` has the model's own names.
KnownTensors known_tensors(const ModelFolder& assets, KnownTensors own, const Store& store, Notes& notes);

// The same by the family's table alone, whatever the files of the folder list; empty if no table describes the
// class. pre: the folder has a `config`.
std::vector<KnownTensor> class_tensors(const ModelFolder& folder, const Store& store, Notes& notes);

// For messages: "no table describes the class LlamaForRewardModel". pre: as above.
std::string no_table_text(const ModelFolder& folder);

}  // namespace mckpt::impl
