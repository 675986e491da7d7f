// The file that is the model of a Hugging Face folder, where the folder has several files of weights: the one
// that transformers loads. transformers (5.23) looks for four names, one after the other, and for no others:
//
//   model.safetensors, foo.safetensors     loads model.safetensors
//   pytorch_model.bin, foo.safetensors     loads pytorch_model.bin
//   foo.safetensors                        loads nothing: any file of weights is the model
#pragma once

#include <string_view>

#include "io/file/folder.h"

namespace mckpt::impl {

inline constexpr std::string_view kHfWeights[] = {"model.safetensors", "model.safetensors.index.json",
                                                  "pytorch_model.bin", "pytorch_model.bin.index.json"};

// The name in the folder that transformers loads; "" if it loads none.
inline std::string_view loaded_by_transformers(const Folder& folder) {
  for (std::string_view name : kHfWeights)
    if (folder.has_file(name)) return name;
  return "";
}

}  // namespace mckpt::impl
