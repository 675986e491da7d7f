// Two models in one folder: a single file, and shards that are another model. One of them is left over from an
// earlier save, and programs load different ones:
//
//   model.safetensors    beside an index that does not name it   transformers loads the file, vLLM and SGLang
//                                                                the files that the index names
//   pytorch_model.bin    beside pytorch_model-*-of-N.bin         transformers loads the file, vLLM and SGLang
//                                                                all of them, over each other
//   pytorch_model.bin    beside foo.safetensors                  transformers loads the file, vLLM and SGLang
//                                                                all safetensors files
//
// So the folder is read only if the tensors of both are equal, or if the caller chooses one
// (OpenOptions::model_files). The last two are of two formats, and are never read together.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/name_hash.h"
#include "io/store/names/hf_weights.h"

namespace mckpt::impl {

class Folder;
class Store;
struct Finding;

inline constexpr std::string_view kSingleFile = kHfWeights[0];

// The two, in words.
struct TwoModelNames {
  std::string single;  // the file
  std::string shards;  // "the shards that model.safetensors.index.json names"
  std::string others;  // what other programs than transformers load: "vLLM and SGLang load the shards"
};

// The finding about the single file in a folder whose shards are read. Throws kTwoModels where the models
// are not equal, none is chosen and the folder's options do not want a finding (TwoModels). `open_single`
// opens the file. pre: the folder has both.
Finding judge_two_models(const Store& shards, const TwoModelNames& names,
                         const std::function<std::unique_ptr<Store>()>& open_single);

// Whether transformers loads a file of torch.save where these names are in one folder, though files of safetensors, or
// their indexes, are there.
bool is_beside_torch(const NameSet<std::string>& names);

// Throws kTwoModels where transformers would load a file of torch.save, and none of these files of safetensors and
// their indexes. An adapter's weights belong to a model that is elsewhere.
void refuse_beside_torch(const Folder& folder, std::vector<std::string> files,
                         const std::vector<std::string>& indexes);

// The remark about a file of weights that is not read, and the same where config.json names the model.
inline constexpr std::string_view kNotReferenced = "not referenced: it is not part of the model (unused)";
inline constexpr std::string_view kNotNamed =
    "not part of the model that transformers_weights of config.json names (unused)";
// The name of the finding for the files of the model that the caller did not choose.
inline constexpr std::string_view kNotChosen = "of the other model in the folder, which was not chosen";

}  // namespace mckpt::impl
