// `--file=unit/core/items/move_test.cc` runs the tests of that file alone: GoogleTest filters by name, and
// this makes the filter that names the tests of one file.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace mckpt::impl {

inline std::string tests_of_file(std::string_view file) {
  std::string filter;
  const auto& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); s++)
    for (int t = 0; t < all.GetTestSuite(s)->total_test_count(); t++) {
      const testing::TestInfo& test = *all.GetTestSuite(s)->GetTestInfo(t);
      if (std::string_view(test.file()).ends_with(file))
        filter += std::string(":") + test.test_suite_name() + "." + test.name();
    }
  return filter.empty() ? "no test in this file" : filter.substr(1);
}

// Takes --file=FILE, if that is the first argument.
inline void filter_by_file(int argc, char** argv) {
  constexpr std::string_view kFile = "--file=";
  if (argc > 1 && std::string_view(argv[1]).starts_with(kFile))
    testing::GTEST_FLAG(filter) = tests_of_file(std::string_view(argv[1]).substr(kFile.size()));
}

}  // namespace mckpt::impl
