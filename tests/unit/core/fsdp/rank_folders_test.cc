// The folders of ranks: names, and which pairs of tensor-parallel and expert-parallel ranks there are.
#include "core/fsdp/rank_folders.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace mckpt::impl::rank_folders_test {
namespace {

std::string folders(const Grid& grid) {
  std::string out;
  for (const Cell& c : cells_of_folders(grid)) out += cat(rank_folder(grid, c).substr(8), " ");
  return out;
}

TEST(RankFolders, HaveANumberForEachKindOfRankThatThereIsMoreThanOneOf) {
  EXPECT_EQ(folders({}), "00 ");
  EXPECT_EQ(folders({.tp = 2}), "00 01 ");
  EXPECT_EQ(folders({.pp = 2}), "00_000 00_001 ");
  EXPECT_EQ(folders({.ep = 2}), "00_000 00_001 ");
  EXPECT_EQ(folders({.tp = 2, .etp = 2, .pp = 2}), "00_000 01_000 00_001 01_001 ");
  EXPECT_EQ(rank_folder({.tp = 128, .ep = 2, .pp = 4}, {.pp = 3, .tp = 127, .ep = 1}), "mp_rank_127_003_001");
}

TEST(RankFolders, AreThoseOfRanksAndNotEveryPair) {
  EXPECT_EQ(folders({.tp = 2, .ep = 4}), "00_000 01_001 00_002 01_003 ");
  EXPECT_EQ(folders({.tp = 2, .ep = 2, .etp = 2}), "00_000 01_000 00_001 01_001 ");
  EXPECT_EQ(folders({.tp = 4, .ep = 2}), "00_000 01_001 02_000 03_001 ");
  EXPECT_EQ(folders({.tp = 3, .ep = 2}), "00_000 01_001 02_000 00_001 01_000 02_001 ");
  EXPECT_EQ(folders({.tp = 2, .cp = 2, .ep = 4, .dp = 7}), folders({.tp = 2, .ep = 4}));
}

TEST(RankFolders, AreRefusedWhereTwoPartsOfTheExpertsHaveOne) {
  try {
    cells_of_folders({.tp = 2, .etp = 4});
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kBadGrid);
    EXPECT_EQ(e.found(), "`tp` 2");
  }
}

TEST(RankFolders, AreReadBackByTheirNumbers) {
  EXPECT_EQ(rank_folder_numbers("mp_rank_01_002_003"), (std::vector<i64>{1, 2, 3}));
  EXPECT_EQ(rank_folder_numbers("mp_rank_127"), std::vector<i64>{127});
  for (const char* other : {"mp_rank_", "mp_rank_01_", "mp_rank_01_2x", "mp_rank_0_0_0_0",
                            "mp_rank_00_model_states.pt", "rank_00", "mp_rank_1234567890"})
    EXPECT_TRUE(rank_folder_numbers(other).empty()) << other;
}

}  // namespace
}  // namespace mckpt::impl::rank_folders_test
