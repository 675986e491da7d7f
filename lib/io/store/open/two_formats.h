// Two models in one folder, in two formats: a save of torch DCP, and a model of Hugging Face.
//
//   .metadata, __0_0.distcp                       the commands for checkpoints of runs read these
//   config.json, model-00001-of-00004.safetensors transformers, and the commands for models, read these
//
// Nothing says that they are one model, so such a folder is not read unless the caller chooses the model of
// Hugging Face (OpenOptions::model_files). model.safetensors beside other shards:
// io/safetensors/two_models.h.
#pragma once

#include <string>

#include "core/base/name_hash.h"

namespace mckpt::impl {

class Folder;

// Whether files of these names are both.
bool are_two_formats(const NameSet<std::string>& names);
// Whether the folder has both, by the names in it.
bool has_two_formats(const Folder& folder);
// Throws kTwoModels for a folder that has both, unless its options choose.
void refuse_two_formats(const Folder& folder);

}  // namespace mckpt::impl
