// WriteQueue: threads that write stretches of files in the order in which they are given, so that the disk
// always has several to do, while the caller continues. Stretches are in windows of memory, which are used
// again when all their stretches are written:
//
//   caller     fill window 0, add | fill window 1, add | wait(0), fill window 0, add | wait(1), ...
//   threads                         write window 0     | write window 1              | ...
#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "io/copy/job.h"

namespace mckpt::impl {

// The queue is used by one thread. After the first failure nothing more is written, and wait() throws it.
class WriteQueue {
 public:
  static constexpr std::size_t kWindows = 2;
  struct Stretch {
    i32 file = 0;
    i64 offset = 0;
    std::span<const u8> bytes;
  };

  // pre: threads > 0; `out` outlives the queue. Starts fewer threads if the system does not grant all.
  WriteQueue(CopySink& out, int threads);
  ~WriteQueue();  // drops stretches that are not started, and waits for the others
  WriteQueue(const WriteQueue&) = delete;
  WriteQueue& operator=(const WriteQueue&) = delete;

  void add(std::size_t window, std::span<const Stretch> stretches);
  // Returns when all stretches of a window are written. Throws the first failure of any window.
  void wait(std::size_t window);

 private:
  struct Item {
    std::size_t window;
    Stretch stretch;
  };
  void write();

  CopySink& out_;
  std::mutex mutex_;
  std::condition_variable added_, written_;
  std::deque<Item> items_;
  std::array<i64, kWindows> left_{};  // by window, the stretches that are not written yet
  std::exception_ptr failure_;
  bool ended_ = false;
  std::vector<std::jthread> threads_;  // last, so that they end first
};

}  // namespace mckpt::impl
