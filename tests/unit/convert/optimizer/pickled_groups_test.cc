// Fronts and options of groups in pickles.
#include "convert/optimizer/pickled_groups.h"

#include <gtest/gtest.h>

namespace mckpt::impl {
namespace pickled_groups_test {

TEST(PickledGroups, NumbersHaveTheirShortestForm) {
  EXPECT_EQ(shortest_number("7.0"), "7");
  EXPECT_EQ(shortest_number("7"), "7");
  EXPECT_EQ(shortest_number("0.5"), "0.5");
  EXPECT_EQ(shortest_number("1e-08"), "1e-08");
  EXPECT_EQ(shortest_number("(0.9, 0.95)"), "(0.9, 0.95)");
}

TEST(PickledGroups, RanksAreTakenOutOfFronts) {
  EXPECT_EQ(without_rank("optim:rank_2:"), "optim:");
  EXPECT_EQ(without_rank("optim:rank_2:param_groups"), "optim:param_groups");
  EXPECT_EQ(without_rank("optimizer."), "optimizer.");
  EXPECT_EQ(without_tensor_rank("mp_rank_03_001/optimizer."), "mp_rank_*_001/optimizer.");
  EXPECT_EQ(without_tensor_rank("mp_rank_03/optimizer."), "mp_rank_*/optimizer.");
  EXPECT_EQ(without_tensor_rank("optimizer."), "optimizer.");
}

}  // namespace pickled_groups_test
}  // namespace mckpt::impl
