#include "io/copy/task_log.h"

#include <gtest/gtest.h>

#include "io/file/file.h"
#include "io/output/output_files.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

class TaskLogs : public testing::Test {
 protected:
  TempFolder folder_;
  OutputFiles out_{folder_.path(), {}};

  TaskLog open(i64 first, i64 end) { return TaskLog(folder_.path() + "/log", first, end, out_, true); }
  std::vector<i64> done(i64 first, i64 end) {
    TaskLog log = open(first, end);
    std::vector<i64> out;
    for (i64 t = first; t < end; t++)
      if (log.is_done(t)) out.push_back(t);
    return out;
  }
};

// Every task has sums of its own.
std::vector<DoneTask> tasks(const std::vector<i64>& numbers) {
  std::vector<DoneTask> out;
  for (i64 t : numbers) out.push_back({t, static_cast<u32>(1000 + t), static_cast<u32>(7 * t)});
  return out;
}

TEST_F(TaskLogs, HaveNothingDoneAtFirst) { EXPECT_EQ(done(0, 10), std::vector<i64>()); }

TEST_F(TaskLogs, KeepWhatWasFlushed) {
  {
    TaskLog log = open(0, 10);
    log.add(tasks({3, 7}));
    log.flush();
    EXPECT_FALSE(log.is_done(3)) << "what this run did is not what an earlier one left";
    log.add(tasks({8}));  // never flushed
  }
  EXPECT_EQ(done(0, 10), (std::vector<i64>{3, 7}));
}

TEST_F(TaskLogs, AreSharedByProcessesWithPartsOfTheirOwn) {
  {
    TaskLog low = open(0, 4), high = open(4, 10);
    high.add(tasks({4, 9}));
    high.flush();
    low.add(tasks({0}));
    low.flush();
  }
  EXPECT_EQ(done(0, 10), (std::vector<i64>{0, 4, 9}));
  // Another number of processes has other parts.
  EXPECT_EQ(done(3, 5), (std::vector<i64>{4}));
}

TEST_F(TaskLogs, TakeShortAndStrangeLogsForNotDone) {
  folder_.put("log", std::string("\1\0\2\1", 4));  // as an earlier version wrote it
  EXPECT_EQ(done(0, 10), std::vector<i64>());
  {
    TaskLog log = open(0, 10);
    log.add(tasks({0, 1, 2, 3}));
    log.flush();
  }
  std::string text;
  {
    std::ifstream in(folder_.path() + "/log");
    text.assign(std::istreambuf_iterator<char>(in), {});
  }
  ASSERT_EQ(text.size(), 160u);
  folder_.put("log", text.substr(0, 40));  // half of the third entry
  EXPECT_EQ(done(0, 10), (std::vector<i64>{0, 1}));
  for (std::size_t at = 16; at < 32; at++) {  // whichever byte of the second is another
    std::string other = text;
    other[at] ^= 4;
    folder_.put("log", other);
    EXPECT_EQ(done(0, 10), (std::vector<i64>{0, 2, 3})) << at;
  }
  folder_.put("log", text.substr(16));  // entries of other tasks
  EXPECT_EQ(done(0, 10), std::vector<i64>());
}

TEST_F(TaskLogs, KeepTheSums) {
  {
    TaskLog log = open(4, 9);
    log.add(tasks({5, 8}));
    log.flush();
  }
  TaskLog log = open(2, 9);
  ASSERT_TRUE(log.is_done(5) && log.is_done(8));
  EXPECT_EQ(log.done(5).written, 1005u);
  EXPECT_EQ(log.done(8).stated, 56u);
  log.forget(5);
  EXPECT_FALSE(log.is_done(5));
  log.flush();
  EXPECT_EQ(done(0, 10), (std::vector<i64>{8}));
}

TEST_F(TaskLogs, FollowNoLink) {
  folder_.put("victim", "mine");
  std::filesystem::create_symlink("victim", folder_.at("log"));
  EXPECT_EQ(thrown_by([&] { open(0, 1); }).substr(0, 6), "MC3001");
}

TEST_F(TaskLogs, KeepWhatEarlierRunsDid) {
  for (i64 t : {2, 5}) {
    TaskLog log = open(0, 6);
    log.add(tasks({t}));
    log.flush();
  }
  EXPECT_EQ(done(0, 6), (std::vector<i64>{2, 5}));
}

TEST_F(TaskLogs, SayWhenTheyCannotBeOpened) {
  EXPECT_EQ(thrown_by([&] { TaskLog(folder_.path() + "/no/log", 0, 1, out_, true); }).substr(0, 6), "MC3001");
}

}  // namespace
}  // namespace mckpt::impl
