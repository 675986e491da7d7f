#include "io/choice/tensor_choice.h"

#include "core/base/error.h"
#include "gtest/gtest.h"
#include "io/choice/name_regex.h"
#include "tests/support/throws.h"

namespace mckpt::impl::tensor_choice_test {

const std::vector<std::string_view> kNames = {"layers.0.w", "layers.10.w", "layers.2.b", "norm"};

std::vector<i64> chosen(std::string pattern, bool regex) {
  return TensorChoice{.pattern = std::move(pattern), .regex = regex}.choose(kNames);
}

TEST(TensorChoice, globs_match_whole_names) {
  EXPECT_EQ(chosen("", false), (std::vector<i64>{0, 1, 2, 3}));
  EXPECT_EQ(chosen("layers.*.w", false), (std::vector<i64>{0, 1}));
  EXPECT_EQ(chosen("layers.?.*", false), (std::vector<i64>{0, 2}));
}

TEST(TensorChoice, expressions_are_found_anywhere) {
  EXPECT_EQ(chosen("\\d\\d", true), (std::vector<i64>{1}));
  EXPECT_EQ(chosen("^n|b$", true), (std::vector<i64>{2, 3}));
  EXPECT_EQ(chosen("[\\d]\\.b", true), (std::vector<i64>{2}));
}

TEST(TensorChoice, nothing_chosen_names_the_nearest) {
  try {
    chosen("norn", false);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kNoSuchTensor);
    EXPECT_EQ(e.found(), "4 tensors");
    ASSERT_EQ(e.notes().size(), 1u);
    EXPECT_EQ(e.notes()[0], "the nearest name is norm");
  }
}

TEST(TensorChoice, a_glob_that_lacks_its_stars_is_told) {
  try {
    chosen("layers.?", false);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.help(), "a glob has to match the whole name: '*layers.?*' matches 3 tensors");
  }
}

TEST(NameRegex, what_would_mean_something_else_is_refused) {
  EXPECT_EQ(posix_regex("\\d+[\\w.]\\s"), "[0-9]+[[:alnum:]_.]\\s");
  for (const char* pattern : {"\\t", "(a)\\1", "(?:a)", "[\\t]", "[\\]]", "["})
    EXPECT_THROW(NameRegex{pattern}, Error) << pattern;
}

// The C library writes repeats out, and takes memory for each place.
TEST(NameRegex, GroupsInEachOtherAreBounded) {
  const auto nested = [](std::size_t groups) {
    return cat(std::string(groups, '('), "a", std::string(groups, ')'));
  };
  EXPECT_TRUE(NameRegex{nested(200)}.matches("a"));
  EXPECT_EQ(thrown_by([&] { NameRegex{nested(50'000)}; }).substr(0, 6), "MC0001");
}

TEST(NameRegex, RepeatsOfRepeatsAreBounded) {
  for (const char* pattern : {"a{1,255}{1,255}", "((a{1,100}){1,100}){1,100}", "(a{100}b{100}){50}",
                              "a{,}{255}{255}", "(a+{99}){99}", "a++++++++++++++", "[ab]{100}{100}"})
    EXPECT_EQ(thrown_by([&] { NameRegex{pattern}; }).substr(0, 6), "MC0001") << pattern;
  for (const char* pattern :
       {"layers\\.[0-9]{1,2}\\.", "a{1,255}", "((a|b)+c){1,20}$", "(.*)+", "[{]{3}", "a{2}"})
    NameRegex{pattern};
}

}  // namespace mckpt::impl::tensor_choice_test
