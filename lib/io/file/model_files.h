// The words of the setting `model_files`, by which a folder with two models is read
// (io/safetensors/two_models.h).
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "io/file/open_options.h"

namespace mckpt::impl {

inline constexpr std::pair<std::string_view, ModelFiles> kModelFilesWords[] = {
    {"equal", ModelFiles::kEqual}, {"single", ModelFiles::kSingle}, {"shards", ModelFiles::kShards}};

inline std::optional<ModelFiles> model_files_of(std::string_view word) {
  for (const auto& [name, files] : kModelFilesWords)
    if (name == word) return files;
  return std::nullopt;
}

}  // namespace mckpt::impl
