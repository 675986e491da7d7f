// The Hugging Face model that a checkpoint with the model's own names belongs to: the folder with config.json
// and tokenizer. Nothing here needs a table of the model.
//
//   `assets`                                 a folder that the user names
//   ckpt/huggingface/config.json             verl, beside the files of the ranks
//   ckpt/config.json                         Trainer and accelerate: in the checkpoint's folder ...
//   ckpt/pytorch_model_fsdp_0/.metadata      ... or in the one around it
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/int.h"
#include "hf/adapter/amended_config.h"
#include "hf/config/json.h"
#include "hf/config/numbers.h"
#include "hf/config/tower_numbers.h"
#include "io/copy/side_files.h"

namespace mckpt::impl {

class Store;
struct OpenOptions;

// The facts of the model. A value.
struct ModelFolder {
  std::string path;                // the folder with config.json; "": none was found
  bool of_a_run = false;           // the folder has other files of a training run too
  bool around = false;             // it is outside of the checkpoint: others may have written it
  std::optional<HfConfig> config;  // none: there is no config.json, or `not_read` says why
  // Why config.json does not give a `config`: no table knows its model, or a fault in it.
  std::optional<Error> not_read{};
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

// A sentence about a fault in config.json that keeps it from being read as a model; "": it is read, or of a
// model that no table knows.
std::string fault_of_config(const ModelFolder& folder);

// Looks in `assets` if it is given, else in the folders that training frameworks use. Throws kNotFound for
// `assets` without config.json, kBadJson for a config that cannot be read.
ModelFolder find_model_folder(const Store& store, const std::string& source,
                              const std::optional<std::string>& assets);

// The folder that find_model_folder() finds without `assets`: the first of the usual ones that has a
// config.json, which is not read.
ModelFolder model_folder_beside(const Store& store, const std::string& source);

// Throws kNotFound if the folder of the model has no config.json.
void require_config(const std::string& assets, const OpenOptions& opening);

}  // namespace mckpt::impl
