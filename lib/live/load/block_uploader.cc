// The thread that uploads filled slots, and the queues between it and the readers. A device does not report
// when work has landed, so the thread looks every 100 microseconds while something is in progress.
#include "live/load/block_uploader.h"

#include <chrono>

namespace mckpt::impl {

BlockUploader::BlockUploader(Device& device, int slots, i64 slot_bytes, Calls calls)
    : device_(device), slot_bytes_(slot_bytes), calls_(std::move(calls)), upward_(device.lane()) {
  grow(slots);
}

// The memory of slots that are added together is one block of the host and one of the device.
void BlockUploader::grow(int slots) {
  Block staging(device_.staging(), slots * slot_bytes_), landing(device_.weights(), slots * slot_bytes_);
  std::vector<std::unique_ptr<Lane>> lanes;
  for (int i = 0; i < slots; i++) lanes.push_back(device_.lane());
  std::lock_guard lock(mutex_);
  for (int i = 0; i < slots; i++) {
    Slot& slot = slots_.emplace_back();
    slot.staging = staging.data() + i * slot_bytes_;
    slot.landing = landing.data() + i * slot_bytes_;
    slot.lane = std::move(lanes[static_cast<std::size_t>(i)]);
    free_.push_back(&slot);
  }
  memory_.push_back(std::move(staging));
  memory_.push_back(std::move(landing));
  freed_one_.notify_all();
}

BlockUploader::Slot* BlockUploader::take() {
  std::unique_lock lock(mutex_);
  freed_one_.wait(lock, [&] { return stopped_ || !free_.empty(); });
  if (stopped_) return nullptr;
  Slot* slot = free_.back();
  free_.pop_back();
  return slot;
}

void BlockUploader::hand_on(Slot* slot) {
  std::lock_guard lock(mutex_);
  filled_.push_back(slot);
  filled_one_.notify_one();
}

void BlockUploader::end() {
  std::lock_guard lock(mutex_);
  ended_ = true;
  filled_one_.notify_all();
}

void BlockUploader::stop() {
  std::lock_guard lock(mutex_);
  stopped_ = true;
  filled_one_.notify_all();
  freed_one_.notify_all();
}

// Waits for the next slot. False: all is done, or stopped. Otherwise `slot` is the next filled one, or null
// if it is time to look whether uploads have landed.
bool BlockUploader::next(bool some_under_way, Slot*& slot) {
  constexpr std::chrono::microseconds kLook(100);  // much less than what is under way takes
  std::chrono::nanoseconds waited{};
  std::unique_lock lock(mutex_);
  auto woken = [&] { return stopped_ || !filled_.empty() || (ended_ && !some_under_way); };
  if (some_under_way) {
    filled_one_.wait_for(lock, kLook, woken);
  } else if (!woken()) {
    auto from = std::chrono::steady_clock::now();
    filled_one_.wait(lock, woken);
    waited = std::chrono::steady_clock::now() - from;
  }
  slot = filled_.empty() ? nullptr : filled_.front();
  if (slot) filled_.pop_front();
  const bool goes_on = !stopped_ && (slot || some_under_way);
  lock.unlock();
  if (slot && waited.count() > 0 && calls_.idled) calls_.idled(waited);
  return goes_on;
}

// Slots are uploaded in the order in which they were filled. The oldest upload is looked at first, so slots
// become free in that order too.
void BlockUploader::run() {
  std::deque<Slot*> under_way;
  for (Slot* slot; next(!under_way.empty(), slot);) {
    if (slot) {
      if (calls_.straight(slot->work, slot->staging, *upward_)) {
        slot->lane->follow(*upward_);
      } else {
        u8* target = calls_.target(slot->work);
        u8* to = target ? target : slot->landing;
        upward_->upload({slot->staging, static_cast<std::size_t>(slot->bytes)}, to);
        slot->lane->follow(*upward_);
        calls_.behind(slot->work, to, *slot->lane);
      }
      under_way.push_back(slot);
    }
    for (; !under_way.empty() && under_way.front()->lane->done(); under_way.pop_front()) {
      calls_.landed(under_way.front()->work);
      std::lock_guard lock(mutex_);
      free_.push_back(under_way.front());
      freed_one_.notify_one();
    }
  }
}

}  // namespace mckpt::impl
