// The main function of every test program.
#include <gtest/gtest.h>

#include "tests/support/file_filter.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  mckpt::impl::filter_by_file(argc, argv);
  int failed = RUN_ALL_TESTS();
  // A test program that runs no test has lost its tests: that is a failure.
  if (testing::UnitTest::GetInstance()->test_to_run_count() == 0) {
    std::printf("no test was run\n");
    return 1;
  }
  return failed;
}
