// BlockUploader: copies blocks that were read to a device. Reading threads take free slots and pass them on
// when they are filled; one thread makes all calls into the device for them, because calls of many threads
// into a GPU's driver wait for each other.
//
//   take -> read into the slot -> hand_on -> upload, behind -> landed, and the slot is free again
//                                         or straight
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "live/device/device.h"

namespace mckpt::impl {

// A block to read: its number in the plan, and for a shared block its round and its place there.
struct BlockWork {
  i64 block = 0;
  std::optional<std::size_t> round;
  std::size_t place = 0;  // among the round's sends
};

// The slots and their queues. take() and hand_on() are called by readers, run() by the uploading thread,
// end() and stop() by any thread.
class BlockUploader {
 public:
  // A slot: staging memory of the host for one block, memory of the device for it, and a lane. A slot belongs
  // to the thread that took it until hand_on().
  struct Slot {
    BlockWork work;         // set by the reader
    i64 bytes = 0;          // the number of bytes in `staging`, set by the reader
    u8* staging = nullptr;  // memory of the host for one block with its tail

   private:
    friend class BlockUploader;
    u8* landing = nullptr;
    std::unique_ptr<Lane> lane;
  };
  // The functions by which the uploader asks its user. All are called by the thread in run().
  struct Calls {
    // Uploads the items of the block from staging memory to their places; false: they have to be moved there
    // on the device, and nothing was done.
    std::function<bool(const BlockWork&, const u8* staging, Lane& upward)> straight;
    // The address on the device for the block; null: the slot's own memory there.
    std::function<u8*(const BlockWork&)> target;
    // Gives the lane the work that follows the upload, such as a scatter.
    std::function<void(const BlockWork&, const u8* data, Lane&)> behind;
    // Called when the upload and the work behind it are done.
    std::function<void(const BlockWork&)> landed;
    // Called when a slot arrived after the device had nothing to do for so long.
    std::function<void(std::chrono::nanoseconds)> idled;
  };

  // The device outlives this.
  BlockUploader(Device& device, int slots, i64 slot_bytes, Calls calls);

  // Adds slots, with memory of their own. May be called by any thread while slots are uploaded. Throws
  // kOutOfMemory.
  void grow(int slots);

  Slot* take();              // a free slot; waits for one. Null after stop()
  void hand_on(Slot* slot);  // passes a filled slot to the uploading thread
  // Uploads slots until end() was called and all have landed, or until stop().
  void run();
  void end();   // no slot will be passed on any more
  void stop();  // ends all waiting here, at once

 private:
  bool next(bool some_under_way, Slot*& slot);

  Device& device_;
  i64 slot_bytes_;
  Calls calls_;
  std::vector<Block> memory_;
  // The lanes are declared after the memory that they work on, so they end first. One lane has all uploads: a
  // GPU's copy engine loses time whenever it changes the lane.
  std::unique_ptr<Lane> upward_;
  std::deque<Slot> slots_;  // their addresses stay the same while some are added
  std::mutex mutex_;
  std::condition_variable filled_one_, freed_one_;
  std::vector<Slot*> free_;
  std::deque<Slot*> filled_;
  bool ended_ = false, stopped_ = false;
};

}  // namespace mckpt::impl
