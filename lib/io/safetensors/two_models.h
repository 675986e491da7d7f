// Two models in one folder: model.safetensors, and an index with shards that does not name it. One of them is
// left over from an earlier save, and programs load different ones:
//
//   transformers       model.safetensors where it is there, else the index
//   vLLM, SGLang       the files that the index names, where there is an index
//
// So the folder is read only if the tensors of both are equal, or if the caller chooses one
// (OpenOptions::model_files).
#pragma once

#include <string>
#include <string_view>

namespace mckpt::impl {

class Folder;
class SafetensorsStore;
struct Finding;

inline constexpr std::string_view kSingleFile = "model.safetensors";

// What is to be said of model.safetensors in the folder of the shards. Throws kTwoModels where the models are
// not equal, none is chosen and the folder's options do not want a finding (TwoModels). pre: the folder has
// both, and the caller reads the shards.
Finding judge_two_models(const SafetensorsStore& shards, const Folder& folder, const std::string& index_name);

}  // namespace mckpt::impl
