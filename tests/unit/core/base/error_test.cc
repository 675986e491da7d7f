#include "core/base/error.h"

#include <gtest/gtest.h>

#include "core/base/int.h"

namespace mckpt::impl {
namespace error_test {

TEST(Error, SaysWhereWhatAndBothNumbers) {
  Error e = Error(Code::kBadShape, "the size is wrong").file("a.pt").tensor("w").expected(4).found(5);
  EXPECT_STREQ(e.what(), "a.pt: tensor 'w': the size is wrong: expected 4, found 5");
}

TEST(Error, ContextDoesNotReplaceWhatIsKnown) {
  try {
    with_file("outer", [] { with_file("inner", []() -> int { throw Error(Code::kNotFound, "gone"); }); });
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.file(), "inner");
  }
}

TEST(Error, NamesFromFilesCannotDriveTheTerminal) {
  Error e = Error(Code::kBadShape, "bad").tensor("\x1b[2J\nname\x7f");
  EXPECT_STREQ(e.what(), "tensor '\\x1b[2J\\x0aname\\x7f': bad");
}

TEST(ErrorCodes, AscendWithoutTwinsAndSayWhatTheyMean) {
  int last = 0;
  for (const CodeInfo& info : all_codes()) {
    EXPECT_GT(static_cast<int>(info.code), last);
    last = static_cast<int>(info.code);
    EXPECT_GT(info.title.size(), 10u);
    EXPECT_GT(info.explanation.size(), 40u);
    EXPECT_EQ(&code_info(info.code), &info);
  }
  EXPECT_EQ(code_name(Code::kBadShape), "MC0102");
  EXPECT_EQ(code_name(Code::kReadFailed), "MC1002");
}

TEST(CheckedArithmetic, ThrowsInsteadOfWrapping) {
  const i64 max = INT64_MAX;
  EXPECT_EQ(checked_add(max, 0, "n"), max);
  EXPECT_THROW(checked_add(max, 1, "n"), Error);
  EXPECT_THROW(checked_sub(INT64_MIN, 1, "n"), Error);
  EXPECT_THROW(checked_mul(max, 2, "n"), Error);
  EXPECT_THROW(round_up(max, 16, "n"), Error);
  EXPECT_EQ(round_up(17, 16, "n"), 32);
  EXPECT_EQ(ceil_div(0, 5), 0);
}

}  // namespace error_test
}  // namespace mckpt::impl
