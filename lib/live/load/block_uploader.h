// BlockUploader: brings blocks that were read up to a device. Threads that read take free slots and hand them
// on when they are filled; one thread does for all of them what is done with the device, because calls of
// many threads into a GPU's driver wait for each other.
//
//   take -> read into the slot -> hand_on -> upload, behind -> landed, and the slot is free again
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "live/device/device.h"

namespace mckpt::impl {

// What is to be read: a block of the plan, and where it goes when it is one of a round.
struct BlockWork {
  i64 block = 0;
  std::optional<std::size_t> round;
  std::size_t place = 0;  // among the round's sends
};

class BlockUploader {
 public:
  struct Slot {
    BlockWork work;
    i64 bytes = 0;
    u8* staging = nullptr;

   private:
    friend class BlockUploader;
    u8* landing = nullptr;
    std::unique_ptr<Lane> lane;
  };
  // All are called by the thread in run().
  struct Calls {
    // Null: the block lands in the slot's own memory.
    std::function<u8*(const BlockWork&)> target;
    // Gives the lane what follows the upload.
    std::function<void(const BlockWork&, const u8* data, Lane&)> behind;
    // All of that is done.
    std::function<void(const BlockWork&)> landed;
  };

  // The device outlives this.
  BlockUploader(Device& device, int slots, i64 slot_bytes, Calls calls);

  Slot* take();  // waits; null: stopped
  void hand_on(Slot* slot);
  // Uploads until all that was handed on has landed and end() was called, or stop().
  void run();
  void end();   // nothing more is handed on
  void stop();  // whoever waits here returns

 private:
  bool next(bool some_under_way, Slot*& slot);

  Calls calls_;
  Block staging_, landing_;
  // The lanes are declared after the memory that they work on, so they end first. One lane has all uploads: a
  // GPU's copy engine loses time whenever it changes the lane.
  std::unique_ptr<Lane> upward_;
  std::vector<Slot> slots_;
  std::mutex mutex_;
  std::condition_variable filled_one_, freed_one_;
  std::vector<Slot*> free_;
  std::deque<Slot*> filled_;
  bool ended_ = false, stopped_ = false;
};

}  // namespace mckpt::impl
