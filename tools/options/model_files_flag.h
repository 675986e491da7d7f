// --model-files: which weights are read of a folder with two models (io/safetensors/two_models.h).
#pragma once

#include <string_view>

#include "io/file/open_options.h"

namespace mckpt::impl {

inline constexpr const char* kModelFilesHelp =
    "of a folder with model.safetensors and an index that does not name it: equal (refused unless both have "
    "the same tensors), single (model.safetensors) or shards (of the index)";

inline ModelFiles model_files_of(std::string_view word) {
  return word == "single" ? ModelFiles::kSingle : word == "shards" ? ModelFiles::kShards : ModelFiles::kEqual;
}

}  // namespace mckpt::impl
