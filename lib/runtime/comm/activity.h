// Activity: what this rank is doing, for the thread that watches the ranks of the job
// (runtime/watch/rank_watch.h):
//
//   prepare > load > ... > write      phases, entered and left by the thread that runs the command
//   waiting in "barrier"              the collective in which the rank waits for others, if it does
//   progress                          a number that changes whenever the work goes on
//   collectives                       how many calls so far, and the bytes that they brought
//
// Each Comm has one, shared with the Comms that are split from it. Without a watch an Activity costs an
// atomic addition or an uncontended mutex for each call. All functions are thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>

#include "core/base/int.h"
#include "runtime/comm/call_counts.h"

namespace mckpt::impl {

// One for each process of a job. The thread of the command writes it, through Phase, Waiting and
// made_progress(); the thread of the watch reads it 20 times a second.
class Activity {
 public:
  // Has texts of its own: a phase may be over, and its name gone, before the watch has read it.
  struct Now {
    std::string phase = {};
    std::string waiting = {};  // the call in which the rank waits for others; "": none
    i64 calls = 0;             // the number of such calls so far
    i64 progress = 0;          // a changed number means progress; its size means nothing
  };
  Now now() const;
  void made_progress() { steps_++; }
  // The collectives of this rank, counted by its communicators.
  CallCounter& collectives() { return collectives_; }

  // Claims that an error of this rank is the one to report; see claiming_errors in runtime/comm/claim.h.
  // Returns when the claim is granted, and at once if there is no watch; a rank whose claim is refused does
  // not return. `may_follow`: the error may be a consequence of the end of another rank.
  void claim(bool may_follow) const;
  void when_claimed(std::function<void(bool may_follow)> claim);  // set by the watch

  // Sets the last action of a job whose ranks are all ended because one is lost, such as removing temporary
  // files. One of the remaining ranks does it. `last` must not throw, and may be called while the command
  // still runs. An empty function removes the action.
  void when_lost(std::function<void()> last);
  // Called by the watch. A thread that calls when_lost() meanwhile waits.
  void do_last() const;

 private:
  friend class Phase;
  friend class Waiting;

  // The mutex guards the fields below: neither name nor counter of a phase is read once the phase has ended.
  mutable std::mutex mutex_;
  const char* phase_ = "prepare";
  const char* waiting_ = nullptr;
  i64 calls_ = 0;
  const std::atomic<i64>* counter_ = nullptr;
  std::atomic<i64> steps_ = 0;
  CallCounter collectives_;
  std::function<void(bool)> claim_;
  mutable std::mutex last_mutex_;
  std::function<void()> last_;
};

// A part of the work in which a rank should make progress: `counter` changes, or made_progress() is called,
// now and then. Phases nest, and the innermost counts. For the thread that runs the command.
class Phase {
 public:
  // pre: the name and the counter outlive the phase.
  Phase(Activity& of, const char* name, const std::atomic<i64>* counter = nullptr);
  ~Phase();
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  Activity& of_;
  const char* outer_name_;
  const std::atomic<i64>* outer_counter_;
};

// During its lifetime this rank waits for others in a call of that name, so that the watch does not blame
// this rank for the lack of progress.
class Waiting {
 public:
  Waiting(Activity& of, const char* call);  // pre: the name outlives this
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  Activity& of_;
  const char* outer_call_;
};

}  // namespace mckpt::impl
