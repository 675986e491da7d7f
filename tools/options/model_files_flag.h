// --model-files: which weights are read of a folder with two models (io/safetensors/two_models.h).
#pragma once

#include <string>
#include <vector>

#include "io/file/model_files.h"

namespace mckpt::impl {

inline constexpr const char* kModelFilesHelp =
    "of a folder with two models, as model.safetensors beside an index that does not name it: equal (refused "
    "unless both have the same tensors), single (model.safetensors, pytorch_model.bin) or shards";

inline std::vector<std::string> model_files_words() {
  std::vector<std::string> out;
  for (const auto& [word, files] : kModelFilesWords) out.emplace_back(word);
  return out;
}

}  // namespace mckpt::impl
