// ObservedSink: a sink whose writes an observer hears of, and may end.
#pragma once

#include "core/base/error.h"
#include "core/base/observer.h"
#include "io/copy/job.h"

namespace mckpt {

// Throws kInterrupted where the observer asks for it.
inline void check_stop(Observer& observer) {
  if (observer.stop()) throw Error(Code::kInterrupted, "stopped before the work was done");
}

// Hands on what is written, counts it for the observer, and ends the work where that is wanted: a single task
// may be gigabytes.
class ObservedSink final : public CopySink {
 public:
  ObservedSink(CopySink& to, Observer& observer) : to_(to), observer_(observer) {}
  void write(i32 file, i64 offset, std::span<const u8> bytes) override {
    check_stop(observer_);
    to_.write(file, offset, bytes);
    observer_.done(std::ssize(bytes));
  }

 private:
  CopySink& to_;
  Observer& observer_;
};

}  // namespace mckpt
