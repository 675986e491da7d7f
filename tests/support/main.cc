// The main function of every test program. `--file=core/move_test.cc` runs the tests of that file alone.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace {

// GoogleTest filters by name; this makes the filter that names the tests of one file.
std::string tests_of_file(std::string_view file) {
  std::string filter;
  const auto& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); s++)
    for (int t = 0; t < all.GetTestSuite(s)->total_test_count(); t++) {
      const testing::TestInfo& test = *all.GetTestSuite(s)->GetTestInfo(t);
      if (std::string_view(test.file()).ends_with(file)) filter += std::string(":") + test.test_suite_name() + "." + test.name();
    }
  return filter.empty() ? "no test in this file" : filter.substr(1);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  constexpr std::string_view kFile = "--file=";
  if (argc > 1 && std::string_view(argv[1]).starts_with(kFile))
    testing::GTEST_FLAG(filter) = tests_of_file(std::string_view(argv[1]).substr(kFile.size()));
  int failed = RUN_ALL_TESTS();
  // A test program that runs no test has lost its tests: that is a failure.
  if (testing::UnitTest::GetInstance()->test_to_run_count() == 0) {
    std::printf("no test was run\n");
    return 1;
  }
  return failed;
}
