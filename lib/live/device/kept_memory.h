// KeptMemory: memory whose blocks are kept for the next allocation when they are given back. Unsharding the
// modules of a model one after the other needs the same few buffers again and again, and new memory is slow:
// the kernel clears each page, and a GPU waits for all its work.
//
//   allocate 3   [3]          no block is kept
//   release      (3)
//   allocate 2   [3]          the smallest kept block that is large enough
//   allocate 5   [3] [5]
//   release both (3) (5)
//   allocate 7   (5) [7]      no kept block is large enough: the smallest gives way to a new one
//
// So there are never more blocks than were in use at one time, and no block is larger than the largest
// request. A block that is given back may be handed out at once: the caller ensures that work on it has
// ended, or is ordered before the next use (as work of one CUDA stream is). Used by one thread at a time.
#pragma once

#include <map>
#include <unordered_map>

#include "live/device/memory.h"

namespace mckpt::impl {

// A Memory on top of another one, from which it takes and to which it returns blocks.
class KeptMemory final : public Memory {
 public:
  explicit KeptMemory(Memory& from) : from_(from) {}  // outlives this
  ~KeptMemory() override;                             // pre: every block was given back
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;

  u8* allocate(i64 bytes) override;
  void check_room(i64 bytes) const override { from_.check_room(bytes); }
  void release(u8* data) override;

  i64 most_held_bytes() const { return most_held_; }  // the most bytes that were in use or kept at one time

 private:
  void drop_smallest();

  Memory& from_;
  std::multimap<i64, u8*> kept_;         // by size
  std::unordered_map<u8*, i64> in_use_;  // sizes
  i64 held_ = 0, most_held_ = 0;
};

}  // namespace mckpt::impl
