// Writes into a group's weights that are under way elsewhere. Whoever reads the weights waits for them.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>

#include "core/base/int.h"

namespace mckpt::impl {

class PendingWrites {
 public:
  // One write, from begin() until done(). One that ends without done() has failed: the weights are not whole.
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
  // Returns when none is under way. Throws kReadFailed when one has failed.
  void wait();
  // As wait(), but failures are not reported.
  void settle();
  // What failed before counts no more: the weights are going to be written anew.
  void forget_failures();

 private:
  void end(bool failed);

  std::mutex mutex_;
  std::condition_variable ended_;
  i64 under_way_ = 0;
  bool failed_ = false;
};

}  // namespace mckpt::impl
