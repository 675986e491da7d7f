// Looks at names alone: that the tensors of both are equal would not make them one save.
#include "io/store/open/two_formats.h"

#include "core/base/error.h"
#include "io/file/folder.h"

namespace mckpt::impl {

bool has_two_formats(const Folder& folder) {
  bool saved = false, config = false, weights = false;
  for (const FolderEntry& e : folder.entries()) {
    if (e.folder) continue;
    saved |= e.name.ends_with(".metadata") || e.name.ends_with(".distcp");
    config |= e.name == "config.json";
    weights |= e.name.ends_with(".safetensors") || e.name.ends_with(".safetensors.index.json") ||
               e.name == "pytorch_model.bin" || e.name == "pytorch_model.bin.index.json";
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
          "move one of them into a folder of its own, or read the weights by `model_files`: single or shards");
}

}  // namespace mckpt::impl
