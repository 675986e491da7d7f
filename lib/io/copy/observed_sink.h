// ObservedSink: a sink whose writes an observer hears of, and may end.
#pragma once

#include <atomic>

#include "core/base/error.h"
#include "core/base/observer.h"
#include "io/file/copy_sink.h"

namespace mckpt::impl {

// Throws kInterrupted where the observer asks for it.
inline void check_stop(Observer& observer) {
  if (observer.stop()) throw Error(Code::kInterrupted, "stopped before the work was done");
}

// Hands on what is written and counts it for the observer. The copy engine ends between batches where the
// observer asks for it, so that batches under way are finished and need not be repeated. A single task may be
// gigabytes: the sink ends one when kMoreBytes were written after the request.
class ObservedSink final : public CopySink {
 public:
  ObservedSink(CopySink& to, Observer& observer) : to_(to), observer_(observer) {}
  void write(i32 file, i64 offset, std::span<const u8> bytes) override {
    if (observer_.stop() && (more_ += std::ssize(bytes)) > kMoreBytes) check_stop(observer_);
    to_.write(file, offset, bytes);
    observer_.done(std::ssize(bytes));
  }

 private:
  static constexpr i64 kMoreBytes = 64 << 20;

  CopySink& to_;
  Observer& observer_;
  std::atomic<i64> more_ = 0;  // written since the observer asked to stop
};

}  // namespace mckpt::impl
