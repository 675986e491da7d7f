// Loading by blocks, over ranks: values against the moves carried out in plain memory, and every block of the
// files read once by all ranks together.
#include "live/load/block_loader.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "core/base/observer.h"
#include "core/items/apply_move.h"
#include "core/items/plan.h"
#include "io/copy/counts.h"
#include "io/copy/job.h"
#include "io/file/file.h"
#include "live/load/block_plan.h"
#include "runtime/comm/comm.h"
#include "tests/support/job.h"
#include "tests/support/throws.h"
#include "tests/unit/live/late_lane.h"

namespace mckpt::impl {
namespace {

// Files of random bytes, and tasks that read them.
class MadeJob final : public CopyJob {
 public:
  explicit MadeJob(std::span<const i64> file_bytes) {
    std::mt19937_64 random(5);
    for (i64 bytes : file_bytes) {
      data_.emplace_back(static_cast<std::size_t>(bytes));
      for (std::size_t i = 0; i + 8 <= data_.back().size(); i += 8) {
        u64 value = random() & 0x3fff3fff3fff3fff;  // floats that are not NaN
        std::memcpy(data_.back().data() + i, &value, 8);
      }
    }
    for (const std::vector<u8>& d : data_) sources_.emplace_back(d);
  }

  i64 task_count() const override { return std::ssize(tasks_); }
  CopyTask task(i64 index) const override { return tasks_[static_cast<std::size_t>(index)]; }
  const ByteSource& source(i32 file) const override { return sources_[static_cast<std::size_t>(file)]; }

  // One tensor of a file into a destination file of its own.
  void add(i32 file, i64 offset, i64 items, const ItemCast& cast, std::vector<Move> moves,
           i64 destination_items) {
    CopyTask t;
    t.cast = cast;
    i64 from = dtype_bytes(cast.from, 1), to = dtype_bytes(cast.to, 1);
    t.plan.add_source({file, offset, items, static_cast<i32>(from), -1});
    i32 number = static_cast<i32>(memory_.size());
    t.plan.add_destination({number, 0, destination_items, static_cast<i32>(to), -1});
    for (const Move& m : moves) t.plan.add(0, m);
    t.plan.finish();
    tasks_.push_back(std::move(t));
    memory_.emplace_back(static_cast<std::size_t>(destination_items * to), u8{0xEE});
  }
  // Bytes of a file to a place in memory of the caller.
  void add_at(i32 file, i64 offset, i64 bytes, i64 to) {
    CopyTask t;
    t.cast = no_cast(DType::kU8);
    t.plan.add_source({file, offset, bytes, 1, -1});
    t.plan.add_destination({0, to, bytes, 1, -1});
    t.plan.add(0, {.length = bytes});
    t.plan.finish();
    tasks_.push_back(std::move(t));
  }
  std::span<const u8> data(i32 file) const { return data_[static_cast<std::size_t>(file)]; }
  u8* address(i32 file) { return memory_[static_cast<std::size_t>(file)].data(); }

  // Which destinations are not as the plans say.
  std::vector<std::size_t> wrong() const {
    std::vector<std::size_t> out;
    for (std::size_t t = 0; t < tasks_.size(); t++)
      if (expected(tasks_[t], memory_[t].size()) != memory_[t]) out.push_back(t);
    return out;
  }

 private:
  std::vector<u8> expected(const CopyTask& t, std::size_t bytes) const {
    i64 from = dtype_bytes(t.cast.from, 1), to = dtype_bytes(t.cast.to, 1);
    i64 items = static_cast<i64>(bytes) / to;
    std::vector<u8> gathered(static_cast<std::size_t>(items * from)), out(bytes);
    for (const PlannedMove& m : t.plan.moves()) {
      const Region& source = t.plan.source(m.move.slot);
      apply_move(m.move, from, {data_[static_cast<std::size_t>(source.file)].data() + source.offset, 0},
                 {gathered.data(), 0});
    }
    cast_items(t.cast, gathered.data(), out.data(), items);
    return out;
  }

  std::vector<std::vector<u8>> data_, memory_;
  std::vector<MemorySource> sources_;
  std::vector<CopyTask> tasks_;
};

constexpr i64 kMiB = 1 << 20;
const ItemCast kWiden{DType::kBF16, DType::kBF16, DType::kF32, 0, 0};
const ItemCast kNarrow{DType::kF32, DType::kBF16, DType::kBF16, 1, 0};

// Every kind of split there is, of tensors that reach over the borders of blocks.
void add_tasks(MadeJob& job) {
  static_assert(BlockId::kBytes == 4 * kMiB);
  i64 rank = world().rank(), ranks = world().size();
  // Rows: one block after another is this rank's alone.
  i64 share = 4'800'000 / ranks;
  job.add(0, 104, 4'800'000, no_cast(DType::kBF16), {{.from = rank * share, .length = share}}, share);
  // Strips of rows: all ranks need every block.
  i64 columns = 1200 / ranks;
  job.add(0, 10'000'003, 2'400'000, kWiden,
          {{.from = rank * columns, .length = columns, .inner = {1200, columns, 2000}}}, 2000 * columns);
  // Whole, in every rank, with a constant added; at an odd place.
  job.add(1, 4 * kMiB - 7, 1'400'000, kNarrow, {{.length = 1'400'000}}, 1'400'000);
  // Transposed, and behind it padding.
  job.add(1, 10 * kMiB + 2, 600 * 500, no_cast(DType::kU16),
          {{.length = 1, .inner = {500, 1, 600}, .outer = {1, 600, 500}},
           {.kind = MoveKind::kZero, .to = 300'000, .length = 10, .inner = {0, 30, 20}},
           {.kind = MoveKind::kZero, .to = 300'010, .length = 20, .inner = {0, 30, 20}}},
          300'600);
  // Two far ends of a tensor: what is between them is not read.
  job.add(2, 0, 80 * kMiB, no_cast(DType::kU8),
          {{.from = 3, .length = 5}, {.from = 80 * kMiB - 5, .to = 5, .length = 5}}, 10);
}

// Takes its time before parts go.
class SlowRanks final : public DeviceRanks {
 public:
  explicit SlowRanks(std::unique_ptr<DeviceRanks> of) : of_(std::move(of)) {}
  int rank() const override { return of_->rank(); }
  int size() const override { return of_->size(); }
  void all_gather(Lane& lane, std::span<const u8> mine, std::span<u8> all) override {
    of_->all_gather(lane, mine, all);
  }
  void exchange(Lane& lane, std::span<const Part> sends, std::span<const Part> receives) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    lane.wait();
    of_->exchange(lane, sends, receives);
    exchanges++;
  }
  void wait(Lane& lane) override { of_->wait(lane); }

  int exchanges = 0;

 private:
  std::unique_ptr<DeviceRanks> of_;
};

// The host's memory, treated as memory that blocks have to be uploaded to.
class ApartDevice final : public Device {
 public:
  const char* name() const override { return "cpu"; }
  HostMemory& weights() override { return host_.weights(); }
  HostMemory& staging() override { return host_.staging(); }
  bool is_host() const override { return false; }
  std::unique_ptr<Lane> lane() override { return std::make_unique<LateLane>(host_.lane(), counts); }
  std::unique_ptr<DeviceRanks> ranks(Comm& comm) override { return host_.ranks(comm); }

  LaneCounts counts;

 private:
  HostDevice host_;
};

struct WrittenBytes final : Observer {
  void done(i64 more) override { bytes += more; }
  std::atomic<i64> bytes = 0;
};
struct Stopped final : Observer {
  bool stop() override { return true; }
};

template <typename Kind>
class BlockLoader : public testing::Test {};
using Devices = testing::Types<HostDevice, ApartDevice>;
TYPED_TEST_SUITE(BlockLoader, Devices);

TYPED_TEST(BlockLoader, BringsEveryItemToItsPlaceAndReadsEachBlockOnce) {
  for (int threads : {1, 3}) {
    MadeJob job(std::vector<i64>{18 * kMiB + 11, 12 * kMiB, 80 * kMiB});
    add_tasks(job);
    TypeParam device;
    std::unique_ptr<DeviceRanks> ranks = device.ranks(world());
    WrittenBytes written;
    CopyCounts counts = load_blocks(job, [&](i32 file) { return job.address(file); }, device, world(), *ranks,
                                    {.threads = threads, .observer = &written});
    EXPECT_EQ(job.wrong(), std::vector<std::size_t>{});
    EXPECT_EQ(written.bytes, counts.bytes_written);
    i64 reads = counts.reads;
    world().all_reduce({&reads, 1}, Reduce::kSum);
    EXPECT_EQ(reads, 4 + 3 + 2);  // up to byte 14,800,003; from 4 MiB - 7 to 10.6 MiB; two ends
    EXPECT_LT(device.weights().peak_bytes() + device.staging().peak_bytes(), 160 * kMiB);
    EXPECT_EQ(device.weights().held_bytes() + device.staging().held_bytes(), 0);
  }
}

TYPED_TEST(BlockLoader, SaysWhatCannotBeRead) {
  MadeJob job(std::vector<i64>{4 * kMiB});
  job.add(0, 3 * kMiB, 2 * kMiB, no_cast(DType::kU8), {{.length = 2 * kMiB}}, 2 * kMiB);
  TypeParam device;
  std::unique_ptr<Comm> alone = local_comm();
  std::unique_ptr<DeviceRanks> ranks = device.ranks(*alone);
  std::string said = thrown_by([&] {
    load_blocks(job, [&](i32 file) { return job.address(file); }, device, *alone, *ranks, {.threads = 2});
  });
  EXPECT_NE(said.find("passes the end"), said.npos) << said;
  Stopped stop;
  MadeJob other(std::vector<i64>{4 * kMiB});
  other.add(0, 0, 4 * kMiB, no_cast(DType::kU8), {{.length = 4 * kMiB}}, 4 * kMiB);
  said = thrown_by([&] {
    load_blocks(other, [&](i32 file) { return other.address(file); }, device, *alone, *ranks,
                {.threads = 2, .observer = &stop});
  });
  EXPECT_NE(said.find("stopped"), said.npos) << said;
}

// Two rounds are under way at a time, in two buffers: a third waits until the first has been taken apart.
TYPED_TEST(BlockLoader, RoundsWaitForTheBuffersOfThoseBefore) {
  constexpr i64 kBlocks = 24;
  MadeJob job(std::vector<i64>{kBlocks * 4 * kMiB});
  job.add(0, 0, kBlocks * 4 * kMiB, no_cast(DType::kU8), {{.length = kBlocks * 4 * kMiB}},
          kBlocks * 4 * kMiB);
  TypeParam device;
  SlowRanks ranks(device.ranks(world()));
  CopyCounts counts = load_blocks(job, [&](i32 file) { return job.address(file); }, device, world(), ranks,
                                  {.threads = 3, .round_blocks = 1});
  EXPECT_EQ(job.wrong(), std::vector<std::size_t>{});
  i64 reads = counts.reads;
  world().all_reduce({&reads, 1}, Reduce::kSum);
  EXPECT_EQ(reads, kBlocks);
  EXPECT_TRUE(ranks.exchanges >= 6 || world().size() == 1) << ranks.exchanges;
}

// Uploads are one lane's, and what takes a block apart is another's: it has to wait for that block.
TEST(BlockLoaderOfADevice, EveryBlockIsTakenApartBehindItsUpload) {
  MadeJob job(std::vector<i64>{40 * kMiB});
  job.add(0, 0, 20 * kMiB, kWiden, {{.length = 20 * kMiB}}, 20 * kMiB);
  ApartDevice device;
  std::unique_ptr<Comm> alone = local_comm();
  std::unique_ptr<DeviceRanks> ranks = device.ranks(*alone);
  load_blocks(job, [&](i32 file) { return job.address(file); }, device, *alone, *ranks, {.threads = 2});
  EXPECT_EQ(job.wrong(), std::vector<std::size_t>{});
  EXPECT_EQ(device.counts.uploads, 10);
  EXPECT_EQ(device.counts.follows, 10);
}

// Stretches of bytes need no kernel: they are uploaded to where they belong. Two tensors that follow each
// other on both sides are one upload, two with a gap on either side are two.
TEST(BlockLoaderOfADevice, StretchesAreUploadedStraightToTheirPlaces) {
  std::vector<u8> memory(static_cast<std::size_t>(3 * kMiB), u8{0xEE});
  MadeJob job(std::vector<i64>{4 * kMiB});
  job.add_at(0, 0, kMiB, 0);
  job.add_at(0, kMiB, kMiB, kMiB);
  job.add_at(0, 2 * kMiB, 1000, 2 * kMiB + 256);
  job.add_at(0, 2 * kMiB + 1001, 1000, 2 * kMiB + 1256);
  ApartDevice device;
  std::unique_ptr<Comm> alone = local_comm();
  std::unique_ptr<DeviceRanks> ranks = device.ranks(*alone);
  WrittenBytes written;
  load_blocks(job, [&](i32) { return memory.data(); }, device, *alone, *ranks,
              {.threads = 2, .observer = &written});
  EXPECT_EQ(device.counts.uploads, 3);
  EXPECT_EQ(device.counts.scatters, 0);
  EXPECT_EQ(written.bytes, 2 * kMiB + 2000);
  std::vector<u8> wanted(memory.size(), u8{0xEE});
  auto put = [&](i64 from, i64 bytes, i64 to) {
    std::ranges::copy(job.data(0).subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(bytes)),
                      wanted.begin() + to);
  };
  put(0, 2 * kMiB, 0), put(2 * kMiB, 1000, 2 * kMiB + 256), put(2 * kMiB + 1001, 1000, 2 * kMiB + 1256);
  EXPECT_TRUE(memory == wanted);
}

// A file that takes 6 ms for each block, and one task that reads all of it.
class SlowJob final : public CopyJob, private ByteSource {
 public:
  explicit SlowJob(i64 bytes) : ByteSource(bytes), memory(static_cast<std::size_t>(bytes)) {
    task_.cast = no_cast(DType::kU8);
    task_.plan.add_source({0, 0, bytes, 1, -1});
    task_.plan.add_destination({0, 0, bytes, 1, -1});
    task_.plan.add(0, {.length = bytes});
    task_.plan.finish();
  }
  i64 task_count() const override { return 1; }
  CopyTask task(i64) const override { return task_; }
  const ByteSource& source(i32) const override { return *this; }
  i64 readers() const { return std::ssize(readers_); }

  std::vector<u8> memory;

 private:
  void read_inside(i64, std::span<u8> to) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(6));
    std::memset(to.data(), 7, to.size());
    std::lock_guard lock(mutex_);
    readers_.insert(std::this_thread::get_id());
  }

  CopyTask task_;
  mutable std::mutex mutex_;
  mutable std::set<std::thread::id> readers_;
};

#ifdef __SANITIZE_THREAD__
constexpr bool kThreadsAreWatched = true;
#else
constexpr bool kThreadsAreWatched = false;
#endif

// The device takes each block at once, so it waits for the readers most of the time.
TEST(BlockLoaderOfADevice, GetsMoreReadersWhileItWaits) {
  if (world().rank() > 0) return;  // it is about one process
  constexpr i64 kBlocks = 16;
  for (int most : {0, 3}) {
    SlowJob job(kBlocks * BlockId::kBytes);
    ApartDevice device;
    std::unique_ptr<Comm> alone = local_comm();
    std::unique_ptr<DeviceRanks> ranks = device.ranks(*alone);
    CopyCounts counts = load_blocks(job, [&](i32) { return job.memory.data(); }, device, *alone, *ranks,
                                    {.threads = 1, .most_threads = most});
    // The third may come too late on a busy machine. Under ThreadSanitizer the device is the slower one.
    EXPECT_GE(job.readers(), most == 0 || kThreadsAreWatched ? 1 : 2);
    EXPECT_LE(job.readers(), std::max(most, 1));
    EXPECT_EQ(counts.bytes_read, kBlocks * BlockId::kBytes);
    std::vector<u8> sevens(job.memory.size(), u8{7});
    EXPECT_EQ(std::memcmp(job.memory.data(), sevens.data(), sevens.size()), 0);
  }
}

TEST(BlockLoaderOfADevice, AFailedUploadEndsTheLoad) {
  for (int uploads : {0, 1, 5}) {
    MadeJob job(std::vector<i64>{40 * kMiB});
    job.add(0, 0, 40 * kMiB, no_cast(DType::kU8), {{.length = 40 * kMiB}}, 40 * kMiB);
    ApartDevice device;
    device.counts.uploads_left = uploads;
    std::unique_ptr<Comm> alone = local_comm();
    std::unique_ptr<DeviceRanks> ranks = device.ranks(*alone);
    std::string said = thrown_by([&] {
      load_blocks(job, [&](i32 file) { return job.address(file); }, device, *alone, *ranks, {.threads = 2});
    });
    EXPECT_NE(said.find("the device is gone"), said.npos) << said;
    EXPECT_EQ(device.weights().held_bytes() + device.staging().held_bytes(), 0);
  }
}

}  // namespace
}  // namespace mckpt::impl
