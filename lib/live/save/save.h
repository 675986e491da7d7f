// LiveSaveJob: the stored weights that one rank has into its part of an fsdp_dtensor checkpoint, whose layout
// is that of the same grid. What other ranks write is theirs.
#pragma once

#include "convert/jobs/framed_job.h"
#include "live/device/device_bytes.h"
#include "live/model/chunks.h"

namespace mckpt {

class LiveSaveJob final : public FramedJob {
 public:
  // The layout's keys are those of the table, in another order: table_key[k] is key k of the layout. All
  // outlive this. pre: the model is loaded. Throws kInternal when it is sharded in another way than the
  // layout.
  LiveSaveJob(const LiveModel& model, const KeyTable& keys, const DcpLayout& layout,
              std::span<const i32> table_key);

  i64 task_count() const override { return std::ssize(tasks_); }
  CopyTask task(i64 index) const override;
  i64 task_bytes(i64 index) const override;
  const ByteSource& source(i32 file) const override { return *memory_[static_cast<std::size_t>(file)]; }

 private:
  struct Task {
    i64 chunk, live;  // in the layout; in live_
  };

  const DcpLayout& layout_;
  LiveChunks live_;
  std::vector<Task> tasks_;
  std::vector<std::unique_ptr<DeviceBytes>> memory_;
};

}  // namespace mckpt
