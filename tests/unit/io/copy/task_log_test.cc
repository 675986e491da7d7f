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

TEST_F(TaskLogs, HaveNothingDoneAtFirst) { EXPECT_EQ(done(0, 10), std::vector<i64>()); }

TEST_F(TaskLogs, KeepWhatWasFlushed) {
  {
    TaskLog log = open(0, 10);
    log.add(std::vector<i64>{3, 7});
    log.flush();
    EXPECT_FALSE(log.is_done(3)) << "what this run did is not what an earlier one left";
    log.add(std::vector<i64>{8});  // never flushed
  }
  EXPECT_EQ(done(0, 10), (std::vector<i64>{3, 7}));
}

TEST_F(TaskLogs, AreSharedByProcessesWithPartsOfTheirOwn) {
  {
    TaskLog low = open(0, 4), high = open(4, 10);
    high.add(std::vector<i64>{4, 9});
    high.flush();
    low.add(std::vector<i64>{0});
    low.flush();
  }
  EXPECT_EQ(done(0, 10), (std::vector<i64>{0, 4, 9}));
  // Another number of processes has other parts.
  EXPECT_EQ(done(3, 5), (std::vector<i64>{4}));
}

TEST_F(TaskLogs, TakeShortAndStrangeLogsForNotDone) {
  folder_.put("log", std::string("\1\0\2\1", 4));
  EXPECT_EQ(done(0, 10), (std::vector<i64>{0, 3}));
}

TEST_F(TaskLogs, KeepWhatEarlierRunsDid) {
  for (i64 t : {2, 5}) {
    TaskLog log = open(0, 6);
    log.add(std::vector<i64>{t});
    log.flush();
  }
  EXPECT_EQ(done(0, 6), (std::vector<i64>{2, 5}));
}

TEST_F(TaskLogs, SayWhenTheyCannotBeOpened) {
  EXPECT_EQ(thrown_by([&] { TaskLog(folder_.path() + "/no/log", 0, 1, out_, true); }).substr(0, 6), "MC3001");
}

}  // namespace
}  // namespace mckpt::impl
