// The names say what the modules of real ranks say: marks.txt has the dimension of every parameter of every
// golden model.
#include "convert/keys/cut_by_name.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace mckpt::impl {
namespace cut_by_name_test {

TEST(CutByName, IsWhatMegatronMarks) {
  std::ifstream marks(MCKPT_TEST_DATA "/golden/marks.txt");
  int looked = 0, unknown = 0;
  for (std::string line; std::getline(marks, line);) {
    std::istringstream words(line);
    std::string model, name, mark;
    words >> model >> name >> mark;
    const std::optional<int> cut = cut_by_name(name);
    looked++;
    // A module that does not mark what it cuts.
    if (!cut) {
      unknown++;
      EXPECT_NE(name.find("softmax_offset"), name.npos) << line;
      continue;
    }
    EXPECT_EQ(*cut, mark == "-" ? -1 : std::stoi(mark)) << line;
  }
  EXPECT_GT(looked, 400);
  EXPECT_LT(unknown, 5);
}

TEST(CutByName, KnowsNothingOfOtherNames) {
  EXPECT_FALSE(cut_by_name("model.layers.0.self_attn.q_proj.weight"));
  EXPECT_FALSE(cut_by_name("0.exp_avg"));
  EXPECT_FALSE(cut_by_name(""));
}

}  // namespace cut_by_name_test
}  // namespace mckpt::impl
