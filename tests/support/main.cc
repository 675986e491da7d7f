#include <gtest/gtest.h>

// A test program that runs no test has lost its tests: that is a failure.
int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  int failed = RUN_ALL_TESTS();
  if (testing::UnitTest::GetInstance()->test_to_run_count() == 0) {
    std::printf("no test was run\n");
    return 1;
  }
  return failed;
}
