// A live model into folders that appear when they are complete. Rank 0 makes and publishes a folder, every
// rank writes its part, and nothing is made before the plan of all ranks is proved.
//
//   export_to_folder()   HF_DIR/model-00001-of-00002.safetensors ...   like the source's folder
//   save_to_folder()     DST/release/__0_0.distcp ...                  like Megatron-FSDP's checkpoint of this grid
//
// Both are collective, and throw what prove() and run() throw.
#pragma once

#include <string>

#include "core/base/int.h"
#include "io/output/staged_folder.h"

namespace mckpt::impl {

class KeyTable;
class LiveModel;
class Observer;
struct HfModel;

// Plain values, equal on all ranks.
struct LiveFolderOptions {
  int threads = 1;
  bool durable = true;   // false: no fsync
  bool replace = false;  // an earlier result of the same kind is replaced, once the new one is complete
};

// How these folders are staged, for callers that check beforehand whether a folder can be made.
StagedFolder::Options live_staging(bool durable);

// Names, types and packing of the tensors, config and tokenizer are the source's. Returns the bytes of
// all tensors. pre, for both functions: the model is loaded and wrapped, and `keys` are live_keys().
i64 export_to_folder(const LiveModel& model, const KeyTable& keys, const HfModel& source,
                     const std::string& path, const LiveFolderOptions& options, Observer& observer);

// Saves a checkpoint into target/release. Returns the bytes of all chunks.
i64 save_to_folder(const LiveModel& model, const KeyTable& keys, const HfModel& source,
                   const std::string& target, const LiveFolderOptions& options, Observer& observer);

}  // namespace mckpt::impl
