#include "runtime/watch/activity.h"

#include <mutex>
#include <utility>

namespace mckpt {
namespace {

std::mutex mutex;  // of `now` and `counter`: a counter is not read once its phase has ended
Activity now;
const std::atomic<i64>* counter = nullptr;
std::atomic<i64> steps = 0;

}  // namespace

Phase::Phase(const char* name, const std::atomic<i64>* own_counter) {
  std::lock_guard lock(mutex);
  outer_name_ = std::exchange(now.phase, name);
  outer_counter_ = std::exchange(counter, own_counter);
  steps++;
}

Phase::~Phase() {
  std::lock_guard lock(mutex);
  now.phase = outer_name_;
  counter = outer_counter_;
  steps++;
}

Waiting::Waiting(const char* call) {
  std::lock_guard lock(mutex);
  outer_call_ = std::exchange(now.waiting, call);
  now.calls++;
}

Waiting::~Waiting() {
  std::lock_guard lock(mutex);
  now.waiting = outer_call_;
  steps++;
}

void made_progress() { steps++; }

Activity current_activity() {
  std::lock_guard lock(mutex);
  Activity activity = now;
  activity.progress = steps + (counter ? counter->load(std::memory_order_relaxed) : 0);
  return activity;
}

}  // namespace mckpt
