// Phases and waits of one rank, kept as a stack whose outer entries are in the Phase and Waiting objects:
// each object remembers the entry that it replaced and puts it back when it is destroyed.
#include "runtime/comm/activity.h"

#include <utility>

namespace mckpt::impl {

// Steps and the counter of the phase make one number that changes with progress.
Activity::Now Activity::now() const {
  std::lock_guard lock(mutex_);
  return {.phase = phase_,
          .waiting = waiting_ ? waiting_ : "",
          .calls = calls_,
          .progress = steps_ + (counter_ ? counter_->load(std::memory_order_relaxed) : 0)};
}

// Called without the mutex: a claim may wait for ever.
void Activity::claim(bool may_follow) const {
  std::function<void(bool)> claim;
  {
    std::lock_guard lock(mutex_);
    claim = claim_;
  }
  if (claim) claim(may_follow);
}

void Activity::when_claimed(std::function<void(bool)> claim) {
  std::lock_guard lock(mutex_);
  claim_ = std::move(claim);
}

void Activity::when_lost(std::function<void()> last) {
  std::lock_guard lock(last_mutex_);
  last_ = std::move(last);
}

void Activity::do_last() const {
  std::lock_guard lock(last_mutex_);
  if (last_) last_();
}

// Beginning and ending a phase is progress.
Phase::Phase(Activity& of, const char* name, const std::atomic<i64>* counter) : of_(of) {
  std::lock_guard lock(of_.mutex_);
  outer_name_ = std::exchange(of_.phase_, name);
  outer_counter_ = std::exchange(of_.counter_, counter);
  of_.steps_++;
}

Phase::~Phase() {
  std::lock_guard lock(of_.mutex_);
  of_.phase_ = outer_name_;
  of_.counter_ = outer_counter_;
  of_.steps_++;
}

Waiting::Waiting(Activity& of, const char* call) : of_(of) {
  std::lock_guard lock(of_.mutex_);
  outer_call_ = std::exchange(of_.waiting_, call);
  of_.calls_++;
}

Waiting::~Waiting() {
  std::lock_guard lock(of_.mutex_);
  of_.waiting_ = outer_call_;
  of_.steps_++;
}

}  // namespace mckpt::impl
