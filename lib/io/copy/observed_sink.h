// ObservedSink: a sink that counts its writes for an observer and ends a copy that the observer wants to
// stop.
//
//   copy engine --> ObservedSink --> OutputFiles
//                        |
//                        +--> Observer::done(bytes), Observer::stop()?
#pragma once

#include <atomic>

#include "core/base/error.h"
#include "core/base/observer.h"
#include "io/output/copy_sink.h"

namespace mckpt::impl {

// Throws kInterrupted if the observer asks to stop.
inline void check_stop(Observer& observer) {
  if (observer.stop()) throw Error(Code::kInterrupted, "the work was stopped before it was done");
}

// Passes every write on. The copy engine itself ends between batches when the observer asks to stop, so that
// batches under way are finished and need not be repeated. But a single task may be gigabytes: the sink ends
// the copy when kMoreBytes were written after the request. Thread-safe, if both of its parts are; they
// outlive it.
class ObservedSink final : public CopySink {
 public:
  ObservedSink(CopySink& to, Observer& observer) : to_(to), observer_(observer) {}
  void write(i32 file, i64 offset, std::span<const u8> bytes) override {
    if (observer_.stop() && (more_ += std::ssize(bytes)) > kMoreBytes) check_stop(observer_);
    to_.write(file, offset, bytes);
    observer_.done(std::ssize(bytes));
  }
  bool wants(i32 file, i64 offset, i64 bytes) override {
    if (to_.wants(file, offset, bytes)) return true;
    observer_.done(bytes);
    return false;
  }

 private:
  static constexpr i64 kMoreBytes = 64 << 20;

  CopySink& to_;
  Observer& observer_;
  std::atomic<i64> more_ = 0;  // written since the observer asked to stop
};

}  // namespace mckpt::impl
