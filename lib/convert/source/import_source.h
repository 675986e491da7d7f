// What an import reads: a model with its weights under the names of a Hugging Face folder, wherever the two
// are.
//
//   Qwen3-0.6B/                     config.json and safetensors files
//   checkpoint-500/                 pytorch_model_fsdp_0/ of accelerate, config.json beside it
//   global_step100/ + `assets`      files of ZeRO ranks, and the folder of the model
//
// A checkpoint of a training run has the tensors that an export of it writes (convert/source/own_model.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "convert/source/model_folder.h"
#include "core/base/error_code.h"
#include "core/base/int.h"
#include "core/base/notes.h"
#include "hf/model.h"
#include "hf/model_options.h"
#include "io/safetensors/original.h"
#include "io/store/soundness.h"

namespace mckpt::impl {

// Plain values.
struct ImportSourceOptions {
  std::string source{};                 // as the user named it
  std::optional<std::string> assets{};  // the folder with config.json, if it is not the one of the weights
  std::vector<Code> accept{};  // codes of damage that is accepted: of a training run's checkpoint, of scales
  std::string model_dict{};  // as in OwnModelOptions
  HfModelOptions model{};
  int threads = 1;  // that compare tied tensors
};

// The open source. A value that owns its store.
struct ImportSource {
  HfModel model;  // with weights
  // Set for the checkpoint of a training run.
  struct OfRun {
    ModelFolder folder;            // of config.json and the tokenizer
    std::vector<Oddities> damage;  // that was accepted, or is only odd
    Notes notes, left_out;         // of opening; what is not the model's
    i64 objects = 0;               // for which the result has no place
    std::optional<SafetensorsOriginal> original;
  };
  std::optional<OfRun> run{};

  std::vector<std::string> folders() const;  // that are read
  std::optional<SafetensorsOriginal> original()
      const;  // the files in which the model's folder has its tensors
  SideFiles assets(std::string_view tensor_table) const;  // config, tokenizer, code, and that table
  bool has_sums() const;                                  // whether sums of the source's bytes are known
};

// Whether the path is a folder with a config and safetensors files, which is a model without a look at its
// tensors.
bool is_model_folder(const std::string& path, const OpenOptions& opening);

// Reads headers. Throws kNotFound for a folder with a config alone; what open_hf_model(), open_store() and
// open_own_model() throw.
ImportSource open_import_source(const ImportSourceOptions& options);

}  // namespace mckpt::impl
