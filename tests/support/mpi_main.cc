// The main of tests that run as several ranks. Every rank runs every test, rank 0 prints as usual, the others
// print only what failed; the program fails in all ranks when a test failed in any, or when a rank ran no
// test.
#include <gtest/gtest.h>

#include <cstdio>

#include "runtime/comm/comm.h"
#include "tests/support/file_filter.h"
#include "tests/support/job.h"

namespace mckpt::impl {
namespace {

class FailurePrinter : public testing::EmptyTestEventListener {
 public:
  explicit FailurePrinter(int rank) : rank_(rank) {}

 private:
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::printf("[rank %d] %s:%d: %s\n", rank_, result.file_name() ? result.file_name() : "?",
                result.line_number(), result.message());
    std::fflush(stdout);
  }

  int rank_;
};

int run_as_rank(Comm& ranks) {
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  if (ranks.rank() != 0) delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new FailurePrinter(ranks.rank()));
  bool failed = RUN_ALL_TESTS() != 0;
  bool empty = testing::UnitTest::GetInstance()->test_to_run_count() == 0;
  i64 bad_ranks = failed || empty;
  ranks.all_reduce({&bad_ranks, 1}, Reduce::kSum);
  if (ranks.rank() == 0)
    std::printf("%d of %d ranks passed\n", ranks.size() - static_cast<int>(bad_ranks), ranks.size());
  return bad_ranks == 0 ? 0 : 1;
}

}  // namespace
}  // namespace mckpt::impl

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  mckpt::impl::filter_by_file(argc, argv);
  int status = mckpt::impl::run_as_rank(mckpt::impl::world());
  mckpt::impl::test_job().leave();
  return status;
}
