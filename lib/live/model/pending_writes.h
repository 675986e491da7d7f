// PendingWrites: writes into a group's weights that another thread or lane carries out. Code that reads the
// weights waits for them.
//
//   loader   w = begin() ............ w.done()             end without done(): the writes failed
//   reader            wait() ........ returns              wait() throws kReadFailed
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>

#include "core/base/int.h"

namespace mckpt::impl {

// One for each group. All functions are thread-safe.
class PendingWrites {
 public:
  // One write, from begin() until done(). A Write that is destroyed without done() has failed: the weights
  // are not complete.
  class Write {
   public:
    Write(Write&& from) noexcept : of_(from.of_) { from.of_ = nullptr; }
    Write& operator=(Write&&) = delete;
    ~Write();
    void done();

   private:
    friend PendingWrites;
    explicit Write(PendingWrites* of) : of_(of) {}
    PendingWrites* of_;
  };

  Write begin();
  // Returns when no write is in progress. Throws kReadFailed if one has failed.
  void wait();
  // Returns when no write is in progress, failed or not.
  void settle();
  // Forgets earlier failures, because the weights are about to be written anew.
  void forget_failures();

 private:
  void end(bool failed);

  std::mutex mutex_;
  std::condition_variable ended_;
  i64 under_way_ = 0;
  bool failed_ = false;
};

}  // namespace mckpt::impl
