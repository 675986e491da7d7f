// Writing by several threads: all of a window is written when waiting for it returns, and a failure is
// reported to whoever waits.
#include "live/save/write_queue.h"
#include "io/output/copy_sink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "core/base/error.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

class SlowSink final : public CopySink {
 public:
  void write(i32 file, i64 offset, std::span<const u8> bytes) override {
    i64 now = ++under_way_;
    for (i64 most = most_; now > most && !most_.compare_exchange_weak(most, now);) continue;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    under_way_--;
    if (offset == bad_offset) throw Error(Code::kWriteFailed, "the disk is full").file(cat("file ", file));
    std::lock_guard lock(mutex_);
    std::ranges::copy(bytes, written.begin() + offset);
    writes++;
  }

  i64 most() const { return most_; }
  i64 bad_offset = -1;
  std::array<u8, 640> written{};
  i64 writes = 0;

 private:
  std::mutex mutex_;
  std::atomic<i64> under_way_ = 0, most_ = 0;
};

std::vector<WriteQueue::Stretch> stretches(std::span<const u8> window, i64 offset) {
  std::vector<WriteQueue::Stretch> out;
  for (std::size_t i = 0; i < window.size(); i += 2)
    out.push_back({0, offset + static_cast<i64>(i), window.subspan(i, 2)});
  return out;
}

TEST(WriteQueue, WritesWindowsInTurnByAllThreads) {
  SlowSink sink;
  std::array<u8, 16> windows[2];
  {
    WriteQueue queue(sink, 4);
    for (std::size_t turn = 0; turn < 4; turn++) {
      std::array<u8, 16>& window = windows[turn % 2];
      queue.wait(turn % 2);
      window.fill(static_cast<u8>(turn + 1));
      queue.add(turn % 2, stretches(window, static_cast<i64>(turn) * 16));
    }
    queue.wait(0), queue.wait(1);
  }
  for (std::size_t i = 0; i < 64; i++) EXPECT_EQ(sink.written[i], i / 16 + 1) << i;
  EXPECT_GT(sink.most(), 1);
  EXPECT_LE(sink.most(), 4);
}

TEST(WriteQueue, AFailureIsToldAndNothingMoreIsBegun) {
  SlowSink sink;
  sink.bad_offset = 4;
  std::array<u8, 32> window{};
  WriteQueue queue(sink, 1);
  queue.add(0, stretches(window, 0));
  std::string said = thrown_by([&] { queue.wait(0); });
  EXPECT_NE(said.find("the disk is full"), said.npos) << said;
  EXPECT_EQ(thrown_by([&] { queue.wait(1); }), said);
  EXPECT_EQ(sink.writes, 2);
}

TEST(WriteQueue, EndsWithoutWritingWhatNobodyWaitsFor) {
  SlowSink sink;
  std::array<u8, 640> window{};
  { WriteQueue(sink, 1).add(0, stretches(window, 0)); }
  EXPECT_LT(sink.writes, 320);  // which take 640 ms
}

}  // namespace
}  // namespace mckpt::impl
