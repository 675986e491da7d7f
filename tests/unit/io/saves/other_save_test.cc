#include "io/saves/other_save.h"

#include <gtest/gtest.h>

namespace mckpt::impl::other_save_test {
namespace {

TEST(OtherSave, SaysWhatDiffersAndNamesTheFirstEight) {
  const Finding one =
      other_save("rank_1.pt", "rank_0.pt", {unlike_value("step", "5", "7")}, "copy it again", 1);
  EXPECT_EQ(one.message, "the file is of another save than rank_0.pt: step is 5 here and 7 there");
  EXPECT_EQ(one.code, Code::kMixedSaves);
  EXPECT_EQ(one.file, "rank_1.pt");
  EXPECT_EQ(one.help, "copy it again");
  EXPECT_EQ(one.rank, 1);
  EXPECT_FALSE(one.warning);
  const std::vector<std::string> many(9, "a");
  EXPECT_NE(other_save("b", "c", many, "").message.find("c: a, a, a, a, a, a, a, a"), std::string::npos);
  EXPECT_EQ(other_save("b", "c", many, "").message.find("c: a, a, a, a, a, a, a, a, a"), std::string::npos);
}

}  // namespace
}  // namespace mckpt::impl::other_save_test
