// GatherJob: the chunks of a checkpoint into other chunks of the same model. What the two sides have in
// common is found over the model's own items, so that grid, strategy, and whether fused parameters are stored
// whole or in parts may differ. One task is one chunk.
#pragma once

#include "convert/keys/stored_chunks.h"
#include "io/copy/job.h"
#include "io/store/store_files.h"

namespace mckpt {

class GatherJob final : public CopyJob {
 public:
  // One side: the keys of its chunks are those of the table.
  struct Side {
    const KeyTable& keys;
    const ChunkList& chunks;
  };
  // All outlive this. Throws kBadCast.
  GatherJob(const Store& checkpoint, Side from, Side to);

  i64 task_count() const override { return to_.chunks.size(); }
  CopyTask task(i64 index) const override;
  i64 task_bytes(i64 index) const override;
  std::string tensor_of(const Region& region) const override {
    return to_.keys[to_.chunks.key(region.tensor)].name;
  }
  const ByteSource& source(i32 file) const override { return bytes_[file]; }

 private:
  i32 parameter_of(const Side& side, i64 chunk) const { return side.keys[side.chunks.key(chunk)].parameter; }
  std::span<const i32> sources_of(i64 chunk) const;

  Side from_, to_;
  StoreBytes bytes_;
  std::vector<std::vector<i32>> by_parameter_;  // chunks of the checkpoint
};

}  // namespace mckpt
