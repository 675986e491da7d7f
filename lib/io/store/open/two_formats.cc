// Looks at names alone: that the tensors of both are equal would not make them one save.
#include "io/store/open/two_formats.h"

#include "core/base/error.h"
#include "io/file/file_names.h"
#include "io/store/names/dcp_names.h"

namespace mckpt::impl {

namespace {

// Names that transformers loads weights from, or their index.
bool is_of_weights(std::string_view name) {
  if (name.starts_with("pytorch_model")) return name.ends_with(".bin") || name.ends_with(".bin.index.json");
  return name.starts_with("model") &&
         (name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json"));
}

}  // namespace

bool are_two_formats(const NameSet<std::string>& names) {
  bool saved = false, config = false, weights = false;
  for (const std::string& name : names) {
    saved |= is_dcp_name(name);
    config |= name == "config.json";
    weights |= is_of_weights(name);
  }
  return saved && config && weights;
}

bool has_two_formats(const Folder& folder) { return are_two_formats(file_names(folder)); }

void refuse_two_formats(const Folder& folder) {
  if (folder.opening().model_files != ModelFiles::kEqual || !has_two_formats(folder)) return;
  throw Error(
      Code::kTwoModels,
      "the folder holds two models, a save of torch DCP and weights of Hugging Face beside config.json")
      .file(folder.path())
      .note("transformers loads the weights; programs that load checkpoints of runs load the save")
      .help(
          "move one of them into a folder of its own, or read the weights by `model_files`: single or shards, or the save by the path of its .metadata");
}

}  // namespace mckpt::impl
