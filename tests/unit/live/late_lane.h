// A lane of the host's memory that is as late as a GPU's may be.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/error.h"
#include "live/device/device.h"

namespace mckpt::impl {

struct LaneCounts {
  std::atomic<int> uploads_left = -1;  // before one fails; -1: none does
  std::atomic<int> uploads = 0, follows = 0, scatters = 0;
};

// Does what it was given when it has been asked a few times, or somebody waits; one of a device's uploads may
// fail. So what is read, written or given away too early shows.
class LateLane final : public Lane {
 public:
  LateLane(std::unique_ptr<Lane> host, LaneCounts& counts) : host_(std::move(host)), counts_(counts) {}
  ~LateLane() override { work_->off(work_->given); }
  void upload(std::span<const u8> from, u8* to) override {
    if (counts_.uploads_left-- == 0) throw Error(Code::kRanksFailed, "the device is gone");
    counts_.uploads++;
    later([=, this] { host_->upload(from, to); });
  }
  void download(const u8* from, std::span<u8> to) override {
    later([=, this] { host_->download(from, to); });
  }
  void copy(const u8* from, u8* to, i64 bytes) override {
    later([=, this] { host_->copy(from, to, bytes); });
  }
  void zero(u8* at, i64 bytes) override {
    later([=, this] { host_->zero(at, bytes); });
  }
  void scatter(std::span<const ItemCopy> copies) override {
    counts_.scatters++;
    later([this, kept = std::vector<ItemCopy>(copies.begin(), copies.end())] { host_->scatter(kept); });
  }
  void follow(Lane& other) override {
    counts_.follows++;
    auto& before = dynamic_cast<LateLane&>(other);
    later([before = before.work_, upto = before.work_->given] { before->off(upto); });
  }
  void wait() override { work_->off(work_->given); }
  bool done() override {
    if (++asked_ > 3) work_->off(work_->given);
    return work_->left.empty();
  }
  // Gives the lane any other work.
  void later(std::function<void()> work) {
    work_->left.push_back(std::move(work));
    work_->given++;
    asked_ = 0;
  }

 private:
  // The work of one lane. Lanes that follow it share it, because they may end later, as a stream of a GPU may wait
  // for an event of a stream that was given back.
  struct Work {
    std::deque<std::function<void()>> left;
    i64 given = 0;
    // As far as the first `upto` pieces of what was given.
    void off(i64 upto) {
      for (; given - std::ssize(left) < upto; left.pop_front()) left.front()();
    }
  };

  std::unique_ptr<Lane> host_;
  LaneCounts& counts_;
  std::shared_ptr<Work> work_ = std::make_shared<Work>();
  int asked_ = 0;
};

}  // namespace mckpt::impl
