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

// The first of all ranks of the whole grid, with data-parallel and context-parallel ranks, that are in a
// folder.
TEST(RankFolders, BeginWithTheirFirstRank) {
  i64 seen = 0;
  for (Grid grid :
       {Grid{.tp = 2, .cp = 2, .pp = 3, .dp = 2}, Grid{.tp = 4, .ep = 2, .etp = 1, .pp = 2, .dp = 3},
        Grid{.tp = 2, .ep = 4, .etp = 1, .dp = 2}, Grid{.tp = 2, .ep = 2, .etp = 2, .pp = 2, .dp = 4},
        Grid{.tp = 1, .cp = 4, .ep = 2, .pp = 2, .dp = 1}}) {
    for (const Cell& cell : cells_of_folders(grid)) {
      const std::string folder = rank_folder(grid, cell);
      i64 first = 0;
      while (rank_folder(grid, cell_of(grid, first)) != folder) first++;
      EXPECT_EQ(rank_of_folder(grid, cell), first) << to_string(grid) << " " << folder;
      seen++;
    }
  }
  EXPECT_EQ(seen, 6 + 8 + 4 + 8 + 4);
}

}  // namespace
}  // namespace mckpt::impl::rank_folders_test
