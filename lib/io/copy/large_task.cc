// A mutex guards which slice is next; slices are copied without it.
#include "io/copy/large_task.h"

#include <utility>

#include "core/items/plan.h"
#include "io/copy/job.h"
#include "io/copy/task_log.h"
#include "io/copy/worker.h"
#include "io/file/crc32.h"

namespace mckpt::impl {

LargeTask::LargeTask(const CopyTask& task, std::vector<Slice> slices)
    : task_(task), slices_(std::move(slices)) {
  for (const Slice& s : slices_) sums_.emplace_back(s.size());
}

bool LargeTask::has_slices() const {
  std::lock_guard lock(mutex_);
  return next_ < slices_.size();
}

void LargeTask::carry_out(CopyWorker& worker) {
  std::unique_lock lock(mutex_);
  while (next_ < slices_.size()) {
    std::size_t slice = next_++;
    running_++;
    lock.unlock();
    i64 before = worker.counts().infinite;
    std::exception_ptr error;
    try {
      worker.run_slice(task_, slices_[slice], sums_[slice]);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    infinite_ += worker.counts().infinite - before;
    if (error && (!error_ || slice < failed_)) error_ = error, failed_ = slice;
    if (error_) next_ = slices_.size();
    if (--running_ == 0) ended_.notify_all();
  }
}

i64 LargeTask::finish(CopyWorker& worker, u32& sum) {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return running_ == 0; });
  if (error_) std::rethrow_exception(error_);
  const std::vector<u32> sums = sums_of_destinations();
  worker.end_slices(task_, sums);
  sum = sum_of_sums(sums);
  return infinite_;
}

// Windows of one destination follow each other.
std::vector<u32> LargeTask::sums_of_destinations() const {
  std::vector<u32> sums(static_cast<std::size_t>(task_.plan.destination_count()));
  for (std::size_t s = 0; s < slices_.size(); s++)
    for (std::size_t w = 0; w < slices_[s].size(); w++) {
      const Window& window = slices_[s][w];
      i64 bytes = window.items.items() * task_.plan.destination(window.destination).item_bytes;
      u32& sum = sums[static_cast<std::size_t>(window.destination)];
      sum = crc32_join(sum, sums_[s][w], bytes);
    }
  return sums;
}

}  // namespace mckpt::impl
