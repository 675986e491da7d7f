// Observer: what long work reports while it is under way, and how it is asked to stop. Every function does
// nothing unless it is overridden.
//
//   begin("write", 1000)  done(400)  done(600)  begin("compare", 0)  done(0)  end()
//
// One thread begins and ends phases; all threads of the work call done() and stop().
#pragma once

#include <string>

#include "core/base/int.h"
#include "core/base/notes.h"

namespace mckpt::impl {

// The work calls it and does not own it. done() and stop() must be thread-safe and cheap.
class Observer {
 public:
  virtual ~Observer() = default;

  // A part of the work begins, such as "write" or "compare", and ends the one before it. `bytes`: how many
  // done() is going to report; 0: not known.
  virtual void begin(const std::string& /*phase*/, i64 /*bytes*/) {}
  // So many bytes of the phase more are done. Called by all threads of the work; 0: work goes on.
  virtual void done(i64 /*bytes*/) {}
  virtual void end() {}  // of the last phase

  // Asked often, by all threads: true ends the work with Error(kInterrupted). Finished work stays for a run
  // that resumes.
  virtual bool stop() { return false; }

  // From here on an unfinished result is in the hidden folder beside `path`.
  virtual void staged(const std::string& /*path*/) {}
  // The result has its name: a later error leaves it whole.
  virtual void published() {}
  virtual void note(const Note&) {}
};

}  // namespace mckpt::impl
