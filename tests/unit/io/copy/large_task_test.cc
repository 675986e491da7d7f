// One large task and several threads: those without a task of their own carry out slices of it.
#include "io/copy/large_task.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/items/item_cast.h"
#include "core/items/move.h"
#include "core/items/plan.h"
#include "io/copy/engine.h"
#include "io/copy/job.h"
#include "io/copy/written_sums.h"
#include "io/file/crc32.h"
#include "io/file/file.h"
#include "io/output/copy_sink.h"

namespace mckpt::impl {
namespace {

constexpr i64 kItems = 300'000;
constexpr i64 kHead = 3, kTail = 4;

// The first read waits for the second, which only another thread can begin; some reads may fail.
class Source final : public ByteSource {
 public:
  explicit Source(std::span<const u8> bytes) : ByteSource(std::ssize(bytes)), bytes_(bytes) {}
  mutable std::atomic<int> reads = 0;
  mutable std::atomic<bool> met = false;
  i64 fails_from = kItems;
  bool fails_late = false;  // the first read fails after the second

 private:
  void read_inside(i64 offset, std::span<u8> to) const override {
    if (reads++ == 0) {
      for (int ms = 0; ms < 5'000 && reads < 2; ms++)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      met = reads >= 2;
      if (fails_late) std::this_thread::sleep_for(std::chrono::milliseconds(30));
    }
    if (offset + std::ssize(to) > fails_from)
      throw Error(Code::kReadFailed, "the disk is gone").offset(offset);
    std::memcpy(to.data(), bytes_.data() + offset, to.size());
  }
  std::span<const u8> bytes_;
};

// One task, of one destination with a frame: the tail is the sum of the items.
struct Job final : CopyJob {
  std::vector<u8> bytes;
  std::unique_ptr<Source> from;

  Job() {
    for (i64 i = 0; i < kItems; i++) bytes.push_back(static_cast<u8>(i * 131 >> 7));
    from = std::make_unique<Source>(bytes);
  }
  i64 task_count() const override { return 1; }
  CopyTask task(i64) const override {
    CopyTask task;
    task.cast = {DType::kU8, DType::kU8, DType::kU8, 0, 0};
    task.plan.add_source({0, 0, kItems, 1, 0});
    task.plan.add_destination({0, kHead, kItems, 1, 0});
    task.plan.add(0, move_of({0, 0, kItems, {}, {}}, 0));
    task.plan.finish();
    return task;
  }
  const ByteSource& source(i32) const override { return *from; }
  Frame frame(const Region&) const override { return {kHead, kTail}; }
  void write_head(const Region&, std::span<u8> to) const override { std::memset(to.data(), 'h', to.size()); }
  void write_tail(const Region&, u32 crc, std::span<u8> to) const override {
    std::memcpy(to.data(), &crc, 4);
  }
};

struct Sink final : CopySink {
  std::vector<u8> bytes = std::vector<u8>(kHead + kItems + kTail);
  std::set<std::thread::id> threads;
  std::mutex mutex;
  void write(i32, i64 offset, std::span<const u8> data) override {
    std::lock_guard lock(mutex);
    std::memcpy(bytes.data() + offset, data.data(), data.size());
    threads.insert(std::this_thread::get_id());
  }
};

TEST(LargeTask, ThreadsWithoutATaskCarryOutItsSlices) {
  Job job;
  Sink out;
  WrittenSums written;
  CopyOptions options{.threads = 3, .batch_bytes = 7'000};
  options.written = &written;
  CopyCounts counts = run_copy(job, out, options);
  EXPECT_TRUE(job.from->met);
  EXPECT_GE(out.threads.size(), 2u);
  EXPECT_EQ(counts.bytes_read, kItems);
  EXPECT_EQ(counts.bytes_written, kHead + kItems + kTail);

  u32 sum = crc32(0, job.bytes), tail = 0;
  std::memcpy(&tail, out.bytes.data() + kHead + kItems, 4);
  EXPECT_EQ(tail, sum);
  EXPECT_TRUE(std::equal(job.bytes.begin(), job.bytes.end(), out.bytes.begin() + kHead));
  EXPECT_EQ(out.bytes[0], 'h');
  EXPECT_EQ(written.by_place().crc32(0, kHead), sum);
  ASSERT_EQ(written.data().size(), 1u);
  EXPECT_EQ(written.data()[0].bytes, kItems);
}

TEST(LargeTask, AFaultOfAnyThreadIsTheErrorOfTheTask) {
  for (bool left_out : {false, true}) {
    Job job;
    job.from->fails_from = kItems - 1000;
    Sink out;
    int asked = 0;
    CopyOptions options{.threads = 3, .batch_bytes = 7'000};
    if (left_out)
      options.leave_out = [&](i64 task, const Error& e) {
        asked++;
        return task == 0 && e.code() == Code::kReadFailed;
      };
    if (left_out)
      run_copy(job, out, options);
    else
      EXPECT_THROW(run_copy(job, out, options), Error);
    EXPECT_EQ(asked, left_out ? 1 : 0);
  }
}

TEST(LargeTask, TheErrorOfItsLowestSliceIsTold) {
  Job job;
  job.from->fails_from = 0, job.from->fails_late = true;
  Sink out;
  i64 told = -1;
  try {
    run_copy(job, out, {.threads = 3, .batch_bytes = 7'000});
  } catch (const Error& e) {
    told = e.offset();
  }
  EXPECT_TRUE(job.from->met);
  EXPECT_EQ(told, 0);
}

}  // namespace
}  // namespace mckpt::impl
