// ImportJob: Hugging Face tensors into the chunks of a checkpoint. One task is all chunks that are fed by the
// same source tensors, so that these are read once.
#pragma once

#include "convert/jobs/framed_job.h"
#include "convert/keys/stored_chunks.h"
#include "convert/keys/tensor_regions.h"
#include "io/store/store_files.h"

namespace mckpt {

class ImportJob final : public FramedJob {
 public:
  // All outlive this. Throws kBadCast.
  ImportJob(const Store& source, const KeyTable& keys, const ChunkList& chunks, const DcpLayout* layout,
            ReadSums* sums = nullptr);

  i64 task_count() const override { return std::ssize(tasks_) - 1; }
  CopyTask task(i64 index) const override;
  i64 task_bytes(i64 index) const override { return task_bytes_[static_cast<std::size_t>(index)]; }
  // Those that the task writes.
  std::span<const i32> chunks_of(i64 index) const;
  const ByteSource& source(i32 file) const override { return bytes_[file]; }
  std::string tensor_of(const Region& region) const override {
    return cat("model.module.", keys_[chunks_.key(region.tensor)].name);
  }

 private:
  Conversion conversion_of(i64 chunk) const;
  void group_chunks();

  const KeyTable& keys_;
  const ChunkList& chunks_;
  StoreBytes bytes_;
  TensorRegions regions_;
  std::vector<i32> order_;  // chunks, task by task
  std::vector<i64> task_bytes_;
  std::vector<i64> tasks_;  // the first of each task in order_, and the end
};

}  // namespace mckpt
