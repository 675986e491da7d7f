#include "io/copy/engine.h"
#include "io/output/output_files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "core/base/error.h"
#include "core/items/dtype.h"
#include "core/items/item_cast.h"
#include "core/items/item_run.h"
#include "core/items/move.h"
#include "core/items/plan.h"
#include "io/copy/job.h"
#include "io/copy/lost_values.h"
#include "io/copy/task_log.h"
#include "io/file/crc32.h"
#include "io/file/file.h"

namespace mckpt::impl {
namespace {

namespace fs = std::filesystem;

class TempFolder {
 public:
  TempFolder() {
    std::string name = (fs::temp_directory_path() / "mckpt_copy_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TempFolder() { fs::remove_all(path_); }
  std::string path() const { return path_; }
  std::vector<u8> read(const std::string& name) const {
    std::ifstream in(path_ + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::string path_;
};

// A job whose tasks are given by a function, over sources in memory. Destinations have a head of three bytes
// and a tail that holds their checksum.
struct TestJob : CopyJob {
  std::vector<std::vector<u8>> bytes;
  std::vector<MemorySource> sources;
  std::vector<std::function<CopyTask()>> tasks;
  std::vector<i64> sizes;  // of what each task writes; empty: not known
  i64 work = 0;            // of each task; 0: what it writes
  bool framed = true;

  i64 task_count() const override { return static_cast<i64>(tasks.size()); }
  CopyTask task(i64 i) const override { return tasks[static_cast<std::size_t>(i)](); }
  i64 task_bytes(i64 i) const override { return sizes.empty() ? 1 : sizes[static_cast<std::size_t>(i)]; }
  i64 task_work(i64 i) const override { return work > 0 ? work : task_bytes(i); }
  const ByteSource& source(i32 file) const override { return sources[static_cast<std::size_t>(file)]; }
  Frame frame(const Region&) const override { return framed ? Frame{3, 4} : Frame{}; }
  void write_head(const Region& r, std::span<u8> to) const override {
    for (u8& b : to) b = static_cast<u8>(r.tensor);
  }
  void write_tail(const Region&, u32 crc, std::span<u8> to) const override {
    std::memcpy(to.data(), &crc, 4);
  }
};

// The common part of all ways of splitting a matrix over cells: runs of one or two sources, in local order.
std::vector<ItemRun> split_runs(int kind, i64 rows, i64 columns, i64 cell, i64 cells) {
  i64 r = rows / cells, c = columns / cells;
  switch (kind) {
    case 0:
      return {{0, r * cell * columns, r * columns, {}, {}}};  // rows
    case 1:
      return {{0, c * cell, c, {columns, rows}, {}}};  // columns
    case 2:
      return {{0, r * cell * columns, r * columns, {}, {}},
              {1, r * cell * columns, r * columns, {}, {}}};  // gated
    default:
      return {{0, c * cell, 1, {columns, rows}, {1, c}}};  // transposed
  }
}

// Matrices of random sizes, split in one of the ways, every cell's local order cut once more; and what the
// destination files must hold, item by item.
struct Scenario {
  TestJob job;
  std::vector<OutputFile> files;
  std::vector<std::vector<u8>> expected;

  explicit Scenario(std::mt19937& random, int tensors, i64 largest, i64 item, const ItemCast& cast) {
    auto upto = [&](i64 n) { return std::uniform_int_distribution<i64>(0, n)(random); };
    i64 out_item = cast.identity() ? item : dtype_info(cast.to).bits / 8;
    const i64 cells = 2, files_count = 3;
    expected.resize(files_count);
    job.bytes.resize(2);
    for (int t = 0; t < tensors; t++) {
      int kind = static_cast<int>(upto(3));
      i64 rows = cells * (1 + upto(largest)), columns = cells * (1 + upto(largest));
      struct Place {
        i32 file;
        i64 offset;
      };
      std::vector<Place> in;
      for (int slot = 0; slot < (kind == 2 ? 2 : 1); slot++) {
        std::vector<u8>& file = job.bytes[static_cast<std::size_t>(t % 2)];
        file.resize(file.size() + static_cast<std::size_t>(item * upto(2)));  // gaps between tensors
        in.push_back({t % 2, static_cast<i64>(file.size())});
        for (i64 i = 0; i < rows * columns * item; i++) file.push_back(static_cast<u8>(random()));
      }
      struct Out {
        Place place;
        std::vector<ItemRun> runs;
      };
      std::vector<Out> outs;
      for (i64 cell = 0; cell < cells; cell++) {
        std::vector<ItemRun> runs = split_runs(kind, rows, columns, cell, cells);
        i64 items = items_of(runs), row = kind == 1 ? columns / cells : kind == 3 ? rows : columns;
        i64 middle = upto(items / row) * row;
        for (ItemRange range : {ItemRange{0, middle}, ItemRange{middle, items}}) {
          if (range.empty()) continue;
          std::vector<u8>& file = expected[static_cast<std::size_t>(upto(files_count - 1))];
          i32 number = static_cast<i32>(&file - expected.data());
          file.insert(file.end(), 3, static_cast<u8>(t));
          outs.push_back({{number, static_cast<i64>(file.size())}, cut(runs, range)});
          std::vector<u8> packed;
          for (const ItemRun& run : outs.back().runs)
            for (i64 i = 0; i < run.items(); i++) {
              const u8* from = &job.bytes[static_cast<std::size_t>(t % 2)][static_cast<std::size_t>(
                  in[static_cast<std::size_t>(run.slot)].offset + run.at(i) * item)];
              std::vector<u8> value(static_cast<std::size_t>(out_item));
              if (cast.identity())
                std::copy_n(from, item, value.begin());
              else
                cast_items(cast, from, value.data(), 1);
              packed.insert(packed.end(), value.begin(), value.end());
            }
          u32 crc = crc32(0, packed);
          file.insert(file.end(), packed.begin(), packed.end());
          for (int b = 0; b < 4; b++) file.push_back(static_cast<u8>(crc >> 8 * b));
        }
      }
      i64 size = 0;
      for (const Out& o : outs) size += items_of(o.runs) * out_item;
      job.sizes.push_back(size);
      job.tasks.push_back([=] {
        CopyTask task;
        task.cast = cast;
        for (const Place& p : in)
          task.plan.add_source({p.file, p.offset, rows * columns, static_cast<i32>(item), t});
        for (const Out& o : outs) {
          i32 d = task.plan.add_destination(
              {o.place.file, o.place.offset, items_of(o.runs), static_cast<i32>(out_item), t});
          i64 to = 0;
          for (const ItemRun& run : o.runs) {
            task.plan.add(d, move_of(run, to));
            to += run.items();
          }
        }
        task.plan.finish();
        return task;
      });
    }
    for (const auto& b : job.bytes) job.sources.emplace_back(b);
    for (std::size_t f = 0; f < expected.size(); f++)
      files.push_back({cat("out", static_cast<i64>(f)), static_cast<i64>(expected[f].size())});
  }

  i64 source_bytes() const { return static_cast<i64>(job.bytes[0].size() + job.bytes[1].size()); }

  CopyCounts check(const CopyOptions& options) {
    TempFolder folder;
    CopyCounts counts;
    {
      OutputFiles out(folder.path(), files);
      counts = run_copy(job, out, options);
    }
    for (std::size_t f = 0; f < expected.size(); f++)
      EXPECT_TRUE(folder.read(files[f].name) == expected[f]) << f;
    return counts;
  }
};

// Making a plan may read the source: no thread waits for another's.
TEST(CopyEngine, MakesPlansInAllThreadsAtOnce) {
  struct Meeting : TestJob {
    mutable std::atomic<int> planning = 0;
    std::atomic<bool> met = false;
    i64 task_bytes(i64) const override { return i64{4} << 20; }
  } job;
  job.bytes.resize(1);
  job.sources.emplace_back(job.bytes[0]);
  for (int t = 0; t < 2; t++)
    job.tasks.push_back([&job] {
      job.planning++;
      for (int ms = 0; ms < 20'000 && job.planning < 2; ms++)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (job.planning == 2) job.met = true;
      CopyTask task;
      task.plan.finish();
      return task;
    });
  TempFolder folder;
  OutputFiles out(folder.path(), {});
  run_copy(job, out, {.threads = 2});
  EXPECT_TRUE(job.met);
}

TEST(CopyEngine, WritesEveryByteWhateverTheThreadsAndTheBatch) {
  std::mt19937 random(21);
  for (int n = 0; n < 16; n++) {
    Scenario s(random, 12, 24, i64{1} << n % 4, no_cast(DType::kU8));
    for (int threads : {1, 3})
      for (i64 batch : {64, 1000, 1 << 20}) {
        CopyOptions options;
        options.threads = threads;
        options.batch_bytes = batch;
        options.memory_bytes = n % 2 ? 1 << 20 : 4096;
        s.check(options);
      }
  }
}

TEST(CopyEngine, ConvertsOnTheWay) {
  std::mt19937 random(22);
  for (const ItemCast& c : {ItemCast{DType::kBF16, DType::kBF16, DType::kF32, 0, 0},
                            ItemCast{DType::kF32, DType::kBF16, DType::kF32, 0, 0},
                            ItemCast{DType::kBF16, DType::kBF16, DType::kBF16, -1, 0}}) {
    Scenario s(random, 8, 30, dtype_info(c.from).bits / 8, c);
    CopyOptions options;
    options.batch_bytes = 500;
    s.check(options);
    options.batch_bytes = 1 << 20;
    s.check(options);
  }
}

// So that a run that resumes this one reports it as well.
TEST(CopyEngine, WhatACastMadeInfiniteIsToldAndNotLoggedAsDone) {
  TestJob job;
  job.framed = false;
  for (u16 value : {u16{0x3f80}, u16{0x47c3}}) {  // 1 and 1e5, beyond fp16
    job.bytes.emplace_back(64);
    for (std::size_t i = 0; i < 64; i += 2) std::memcpy(&job.bytes.back()[i], &value, 2);
    i32 file = static_cast<i32>(job.bytes.size()) - 1;
    job.tasks.push_back([file] {
      CopyTask task;
      task.cast = {DType::kBF16, DType::kBF16, DType::kF16, 0, 0};
      task.plan.add_source({file, 0, 32, 2, file});
      task.plan.add_destination({file, 0, 32, 2, file});
      task.plan.add(0, move_of({0, 0, 32, {}, {}}, 0));
      task.plan.finish();
      return task;
    });
  }
  for (const std::vector<u8>& b : job.bytes) job.sources.emplace_back(b);
  TempFolder folder;
  OutputFiles out(folder.path(), {{"a", 64}, {"b", 64}});
  LostValues lost;
  std::string path = folder.path() + "/log";
  {
    TaskLog log(path, 0, 2, out, false);
    CopyOptions options{.batch_bytes = 1};
    options.lost = &lost, options.log = &log;
    run_copy(job, out, options);
    log.flush();
  }
  EXPECT_EQ(lost.total().infinite, 32);
  TaskLog again(path, 0, 2, out, false);
  EXPECT_TRUE(again.is_done(0));
  EXPECT_FALSE(again.is_done(1));
}

TEST(CopyEngine, ReadsEachByteOnceAlsoWhenTasksAreTakenApart) {
  std::mt19937 random(23);
  Scenario s(random, 6, 900, 2, no_cast(DType::kBF16));
  CopyOptions options;
  options.batch_bytes = 256 << 10;
  CopyCounts counts = s.check(options);
  EXPECT_LE(counts.bytes_read, s.source_bytes());
  EXPECT_GE(counts.bytes_read * 100, s.source_bytes() * 99);  // the gaps between tensors are not read
  EXPECT_LT(counts.reads, 12 * (s.source_bytes() >> 20) + 200);
}

TEST(CopyEngine, AThousandSmallTensorsAreAHandfulOfCalls) {
  std::mt19937 random(24);
  Scenario s(random, 1000, 4, 2, no_cast(DType::kBF16));
  CopyCounts counts = s.check({});
  EXPECT_LT(counts.writes, 10);
}

TEST(CopyEngine, AFaultOfOneThreadEndsTheRunWithItsError) {
  std::mt19937 random(25);
  Scenario s(random, 50, 20, 2, no_cast(DType::kBF16));
  s.job.tasks[30] = []() -> CopyTask { throw Error(Code::kReadFailed, "the disk is gone"); };
  TempFolder folder;
  OutputFiles out(folder.path(), s.files);
  CopyOptions options;
  options.threads = 3;
  options.batch_bytes = 100;
  EXPECT_THROW(run_copy(s.job, out, options), Error);
}

// Another thread fails before it, with a task that comes later.
TEST(CopyEngine, TheErrorOfTheFirstTaskThatFailsIsTold) {
  for (int threads : {1, 2, 3}) {
    std::mt19937 random(28);
    Scenario s(random, 12, 20, 2, no_cast(DType::kBF16));
    std::atomic<bool> later_failed = false;
    s.job.tasks[6] = [&]() -> CopyTask {
      for (int ms = 0; ms < 20'000 && threads > 1 && !later_failed; ms++)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      throw Error(Code::kReadFailed, "task 6 fails");
    };
    s.job.tasks[7] = [&]() -> CopyTask {
      later_failed = true;
      throw Error(Code::kReadFailed, "task 7 fails");
    };
    TempFolder folder;
    OutputFiles out(folder.path(), s.files);
    CopyOptions options;
    options.threads = threads;
    options.batch_bytes = 1;
    std::string told;
    try {
      run_copy(s.job, out, options);
    } catch (const Error& e) {
      told = e.message();
    }
    EXPECT_EQ(told, "task 6 fails") << threads;
  }
}

// Takes what is written, and fails for one file as a disk might.
class BadSink final : public CopySink {
 public:
  explicit BadSink(OutputFiles& out, i32 bad) : out_(out), bad_(bad) {}
  void write(i32 file, i64 offset, std::span<const u8> bytes) override {
    if (file == bad_) throw Error(Code::kReadFailed, "this file is gone");
    out_.write(file, offset, bytes);
  }

 private:
  OutputFiles& out_;
  i32 bad_;
};

TEST(CopyEngine, GoesOnWithoutWhatItMayLeaveOut) {
  std::mt19937 random(27);
  Scenario s(random, 60, 20, 2, no_cast(DType::kBF16));
  auto task = s.job.tasks;
  s.job.tasks[30] = []() -> CopyTask { throw Error(Code::kBadZip, "its header is damaged"); };
  for (i64 batch : {100, 1 << 20}) {
    TempFolder folder;
    OutputFiles out(folder.path(), s.files);
    BadSink sink(out, 1);
    std::set<i64> left_out;
    std::mutex mutex;
    CopyOptions options;
    options.threads = 3;
    options.batch_bytes = batch;
    options.leave_out = [&](i64 index, const Error& e) {
      std::lock_guard lock(mutex);
      EXPECT_EQ(e.code(), index == 30 ? Code::kBadZip : Code::kReadFailed);
      left_out.insert(index);
      return true;
    };
    run_copy(s.job, sink, options);
    for (i64 t = 0; t < std::ssize(task); t++) {
      CopyTask made = task[static_cast<std::size_t>(t)]();
      bool bad = t == 30;
      for (i32 d = 0; d < made.plan.destination_count(); d++) bad |= made.plan.destination(d).file == 1;
      EXPECT_EQ(left_out.contains(t), bad) << t;
      if (bad) continue;
      for (i32 d = 0; d < made.plan.destination_count(); d++) {
        const Region& r = made.plan.destination(d);
        std::size_t file = static_cast<std::size_t>(r.file), at = static_cast<std::size_t>(r.offset);
        std::vector<u8> got = folder.read(s.files[file].name);
        std::size_t bytes = static_cast<std::size_t>(r.items * r.item_bytes);
        EXPECT_EQ(std::memcmp(got.data() + at, s.expected[file].data() + at, bytes), 0) << t;
      }
    }
    options.leave_out = [](i64, const Error&) { return false; };
    EXPECT_THROW(run_copy(s.job, sink, options), Error);
  }
}

TEST(CopyEngine, StopsWhenAsked) {
  std::mt19937 random(26);
  Scenario s(random, 5, 20, 2, no_cast(DType::kBF16));
  TempFolder folder;
  OutputFiles out(folder.path(), s.files);
  std::atomic<bool> stop{true};
  CopyOptions options;
  options.stop = [&] { return stop.load(); };
  try {
    run_copy(s.job, out, options);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInterrupted);
  }
}

TEST(CopyEngine, AsksBetweenTasksThatReadMuch) {
  std::mt19937 random(27);
  Scenario s(random, 20, 4, 2, no_cast(DType::kBF16));
  CopyOptions options;
  int asked = 0;
  options.stop = [&] { return asked++ < 0; };
  s.check(options);
  EXPECT_EQ(asked, 2);  // before the only batch, and when no task is left
  s.job.work = options.batch_bytes;
  asked = 0;
  s.check(options);
  EXPECT_EQ(asked, s.job.task_count() + 1);
}

TEST(OutputFiles, AreMadeAtTheirSizeAndNeverOverOthers) {
  TempFolder folder;
  {
    OutputFiles out(folder.path(), {{"a", 10}, {"empty", 0}});
    out.write(0, 8, std::vector<u8>{1, 2});
  }
  EXPECT_EQ(folder.read("a"), (std::vector<u8>{0, 0, 0, 0, 0, 0, 0, 0, 1, 2}));
  EXPECT_TRUE(folder.read("empty").empty());
  EXPECT_THROW(OutputFiles(folder.path(), {{"a", 10}}), Error);
}

TEST(OutputFiles, ManyFilesNeedFewDescriptors) {
  TempFolder folder;
  std::vector<OutputFile> files;
  for (int i = 0; i < 600; i++) files.push_back({cat("f", i), 8});
  rlimit before{}, tight{};
  getrlimit(RLIMIT_NOFILE, &before);
  tight = before;
  tight.rlim_cur = 300;
  setrlimit(RLIMIT_NOFILE, &tight);
  {
    OutputFiles out(folder.path(), files);
    for (i32 round = 0; round < 2; round++)
      for (i32 i = 0; i < 600; i++) out.write(i, round * 4, std::vector<u8>(4, static_cast<u8>(round + i)));
  }
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(folder.read("f599"), (std::vector<u8>{87, 87, 87, 87, 88, 88, 88, 88}));
}

TEST(OutputFiles, AFullDiskSaysWhatWasNeeded) {
  TempFolder folder;
  try {
    OutputFiles out(folder.path(), {{"huge", i64{1} << 60}});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kWriteFailed);
    EXPECT_NE(std::string(e.file()).find("huge"), std::string::npos);
  }
}

}  // namespace
}  // namespace mckpt::impl
