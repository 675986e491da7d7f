// What this rank is doing, for whoever watches the ranks of the job (runtime/watch/rank_watch.h):
//
//   prepare > load > ... > write      phases, entered and left by the thread that runs the command
//   waiting in "barrier"              the collective in which the rank waits for others, if it does
//   progress                          a number that changes whenever something went on
//
// Each Comm has one, shared with the Comms that are split from it. It costs next to nothing where nobody
// watches. All functions are thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>

#include "core/base/int.h"

namespace mckpt::impl {

class Activity {
 public:
  struct Now {
    const char* phase = "prepare";
    const char* waiting = nullptr;  // the call in which the rank waits for others
    i64 calls = 0;                  // in which it has waited so far
    i64 progress = 0;               // any other number: something went on
  };
  Now now() const;
  void made_progress() { steps_++; }

  // Claims that an error of this rank is the one to report; see claiming_errors in runtime/comm/claim.h.
  // Returns when it is, and at once where nobody watches. `may_follow`: the error may be what the end of
  // another rank looks like from here.
  void claim(bool may_follow) const;
  void when_claimed(std::function<void(bool may_follow)> claim);  // set by the watch

  // What is done last, by one rank of those that are left, when all are ended because one is lost: temporary files
  // are removed. It must not throw, and may be called while the command still runs. Empty takes it back.
  void when_lost(std::function<void()> last);
  // Called by the watch. Who changes `last` meanwhile waits.
  void do_last() const;

 private:
  friend class Phase;
  friend class Waiting;

  mutable std::mutex mutex_;  // of `now_` and `counter_`: a counter is not read once its phase has ended
  Now now_;
  const std::atomic<i64>* counter_ = nullptr;
  std::atomic<i64> steps_ = 0;
  std::function<void(bool)> claim_;
  mutable std::mutex last_mutex_;
  std::function<void()> last_;
};

// A part of the work in which something goes on: `counter` changes, or made_progress() is called, now and
// then. Phases nest, and the innermost counts. For the thread that runs the command.
class Phase {
 public:
  // pre: the name is a literal; the counter outlives the phase.
  Phase(Activity& of, const char* name, const std::atomic<i64>* counter = nullptr);
  ~Phase();
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  Activity& of_;
  const char* outer_name_;
  const std::atomic<i64>* outer_counter_;
};

// While it lives, this rank waits for others in a call of that name: it is not to blame for the lack of
// progress.
class Waiting {
 public:
  Waiting(Activity& of, const char* call);  // pre: a literal
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  Activity& of_;
  const char* outer_call_;
};

}  // namespace mckpt::impl
