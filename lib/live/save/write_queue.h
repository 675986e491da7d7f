// WriteQueue: threads that write stretches of files in the order in which they are given, so that the disk
// has several of them to do at any time, while the caller continues. Stretches are in windows of memory,
// which are used again when all their stretches are written.
#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class CopySink;

class WriteQueue {
 public:
  static constexpr std::size_t kWindows = 2;
  struct Stretch {
    i32 file = 0;
    i64 offset = 0;
    std::span<const u8> bytes;
  };

  WriteQueue(CopySink& out, int threads);  // out outlives this; pre: threads > 0
  ~WriteQueue();                           // drops stretches that are not started
  WriteQueue(const WriteQueue&) = delete;
  WriteQueue& operator=(const WriteQueue&) = delete;

  void add(std::size_t window, std::span<const Stretch> stretches);
  // Returns when all of a window is written. Throws the first failure of any window.
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
  std::array<i64, kWindows> left_{};  // by window, those under way among them
  std::exception_ptr failure_;
  bool ended_ = false;
  std::vector<std::jthread> threads_;  // last, so that they end first
};

}  // namespace mckpt::impl
