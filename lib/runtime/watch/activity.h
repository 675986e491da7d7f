// What this process is at: told by whoever does long work or waits for other ranks, read by the watch over
// the ranks (runtime/watch/rank_watch.h). Costs next to nothing where nobody watches.
#pragma once

#include <atomic>

#include "core/base/int.h"

namespace mckpt {

// A part of the work in which something goes on: `counter` changes, or made_progress() is called, now and
// then. Phases nest, and the innermost counts. For the thread that runs the command.
class Phase {
 public:
  // pre: the name is a literal; the counter outlives the phase.
  explicit Phase(const char* name, const std::atomic<i64>* counter = nullptr);
  ~Phase();
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  const char* outer_name_;
  const std::atomic<i64>* outer_counter_;
};

// While it lives, this rank waits for others in a call of that name: that nothing goes on is not its fault.
class Waiting {
 public:
  explicit Waiting(const char* call);  // pre: a literal
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  const char* outer_call_;
};

void made_progress();  // thread-safe

struct Activity {
  const char* phase = "prepare";
  const char* waiting = nullptr;  // the call in which it waits for other ranks
  i64 calls = 0;                  // in which it has waited so far
  i64 progress = 0;               // any other number: something went on
};

Activity current_activity();  // thread-safe

}  // namespace mckpt
