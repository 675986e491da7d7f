// The file that is the model of a Hugging Face folder, where the folder has several files of weights: the one
// that transformers loads. transformers (5.23) loads the file that config.json names; where it names none, it
// looks for four names, one after the other, and for no others:
//
//   "transformers_weights": "foo.safetensors"   loads foo.safetensors, whatever else is there
//   model.safetensors, foo.safetensors          loads model.safetensors
//   pytorch_model.bin, foo.safetensors          loads pytorch_model.bin
//   foo.safetensors                             loads nothing: any file of weights is the model
#pragma once

#include <string>
#include <string_view>

#include "core/base/name_hash.h"

namespace mckpt::impl {

class Folder;

inline constexpr std::string_view kHfWeights[] = {"model.safetensors", "model.safetensors.index.json",
                                                  "pytorch_model.bin", "pytorch_model.bin.index.json"};

// The name that transformers loads of a folder with files of these names, whose config.json names none; "" if
// it loads none.
inline std::string_view first_weights(const NameSet<std::string>& names) {
  for (std::string_view name : kHfWeights)
    if (names.contains(std::string(name))) return name;
  return "";
}

// The entry of config.json that names a file of safetensors, or an index of such files.
inline constexpr std::string_view kWeightsEntry = "transformers_weights";

// The file that config.json of the folder names; "" if it names none, or only the weights of an adapter.
// Throws kBadConfig for a name that transformers refuses, kBadPath for one that leads out of the folder,
// kShardMissing where there is no such file. A config.json that cannot be parsed names none.
std::string named_by_config(const Folder& folder);

// Whether config.json of the folder has such an entry, whatever it names.
bool has_weights_entry(const Folder& folder);

// The name of named_by_config(), but "" also where the options of the folder choose another model that is
// there (ModelFiles).
std::string chosen_weights(const Folder& folder);

// The name in the folder that transformers loads; "" if it loads none. Throws what named_by_config() throws.
std::string loaded_by_transformers(const Folder& folder);

// The value of the entry in the text of a config.json, which need not be JSON; "" if it has none that is a
// string.
std::string weights_named_in(std::string_view config_json);
// The text of a config.json without the entry; unchanged if it has none. pre: the text is a JSON object.
std::string without_weights_entry(std::string_view config_json);

}  // namespace mckpt::impl
