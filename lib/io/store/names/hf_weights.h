// The file that is the model of a Hugging Face folder, where the folder has several files of weights: the one
// that transformers loads. transformers (5.23) looks for four names, one after the other, and for no others:
//
//   model.safetensors, foo.safetensors     loads model.safetensors
//   pytorch_model.bin, foo.safetensors     loads pytorch_model.bin
//   foo.safetensors                        loads nothing: any file of weights is the model
#pragma once

#include <string>
#include <string_view>

#include "core/base/name_hash.h"

namespace mckpt::impl {

inline constexpr std::string_view kHfWeights[] = {"model.safetensors", "model.safetensors.index.json",
                                                  "pytorch_model.bin", "pytorch_model.bin.index.json"};

// The name that transformers loads of a folder with files of these names; "" if it loads none.
inline std::string_view loaded_by_transformers(const NameSet<std::string>& names) {
  for (std::string_view name : kHfWeights)
    if (names.contains(std::string(name))) return name;
  return "";
}

}  // namespace mckpt::impl
