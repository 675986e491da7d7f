// Counts writes in progress under a mutex, and lets readers wait for the count to become 0.
#include "live/model/pending_writes.h"
#include "core/base/error.h"

namespace mckpt::impl {

PendingWrites::Write::~Write() {
  if (of_) of_->end(true);
}

void PendingWrites::Write::done() {
  of_->end(false);
  of_ = nullptr;
}

PendingWrites::Write PendingWrites::begin() {
  std::lock_guard lock(mutex_);
  under_way_++;
  return Write(this);
}

void PendingWrites::end(bool failed) {
  std::lock_guard lock(mutex_);
  under_way_--;
  failed_ |= failed;
  ended_.notify_all();
}

void PendingWrites::wait() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return under_way_ == 0; });
  if (failed_)
    throw Error(Code::kReadFailed, "writing the weights into the model failed before the end")
        .of_the_moment();
}

void PendingWrites::settle() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return under_way_ == 0; });
}

void PendingWrites::forget_failures() {
  std::lock_guard lock(mutex_);
  failed_ = false;
}

}  // namespace mckpt::impl
