// Looks at names alone: that the tensors of both are equal would not make them one save.
#include "io/store/open/two_formats.h"

#include "core/base/error.h"
#include "io/file/folder.h"
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

bool has_two_formats(const Folder& folder) {
  bool saved = false, config = false, weights = false;
  for (const FolderEntry& e : folder.entries()) {
    if (e.folder) continue;
    saved |= is_dcp_name(e.name);
    config |= e.name == "config.json";
    weights |= is_of_weights(e.name);
  }
  return saved && config && weights;
}

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
