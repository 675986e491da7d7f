// Something that is done by the first thread that needs it. An exception leaves it undone, for the next one.
//
// std::call_once is not used: glibc passes an exception through it only where libgcc_s.so.1 can be loaded,
// and ends the program otherwise. Small images do not have that library, and it cannot be loaded when memory
// has run out.
#pragma once

#include <mutex>

namespace mckpt::impl {

class Once {
 public:
  template <typename Function>
  void run(Function&& function) {
    const std::scoped_lock lock(mutex_);
    if (done_) return;
    function();
    done_ = true;
  }

 private:
  std::mutex mutex_;
  bool done_ = false;
};

}  // namespace mckpt::impl
