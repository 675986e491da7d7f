// A live model into folders that appear when they are whole. Rank 0 makes and publishes a folder, every rank
// writes its part. All of these are collective.
#pragma once

#include <atomic>
#include <string>

#include "core/base/int.h"
#include "io/file/staged_folder.h"

namespace mckpt::impl {

class KeyTable;
class LiveModel;
struct HfModel;

struct LiveFolderOptions {
  int threads = 1;
  bool durable = true;
  std::atomic<i64>* written_bytes = nullptr;  // kept up to date, for whoever shows progress
};

// How these folders are made, for whoever asks beforehand whether they can be.
StagedFolder::Options live_staging(bool durable);

// A Hugging Face folder like the source: names, types and packing, with its config and tokenizer. Returns the
// bytes of all tensors.
i64 export_to_folder(const LiveModel& model, const KeyTable& keys, const HfModel& source,
                     const std::string& path, const LiveFolderOptions& options);

// The checkpoint that a Megatron-FSDP run of the model's grid would have saved, in DST/release. Returns the
// bytes of all chunks.
i64 save_to_folder(const LiveModel& model, const KeyTable& keys, const HfModel& source,
                   const std::string& target, const LiveFolderOptions& options);

}  // namespace mckpt::impl
