// The folders into which the ranks of a Megatron run write a checkpoint of the per-rank form, and which rank
// reads which of them back:
//
//   mp_rank_01            tp 1
//   mp_rank_01_002        tp 1 of stage 2, or with experts on several ranks and one stage: tp 1, ep 2
//   mp_rank_01_002_003    tp 1, stage 2, ep 3
//
// A folder is named by the tensor-parallel and the expert-parallel rank, and not every pair of the two is a
// rank: both meshes arrange the same ranks, so that with tp 2, ep 4 and etp 1 the pairs are (0, 0), (1, 1),
// (0, 2), (1, 3).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "core/fsdp/grid.h"

namespace mckpt::impl {

inline constexpr std::string_view kRankFolderFront = "mp_rank_";

// The numbers of "mp_rank_01_002": 1, 2. Empty for another name, and for more than three numbers.
std::vector<i64> rank_folder_numbers(std::string_view name);

// The folder of the cell's rank.
std::string rank_folder(const Grid& grid, const Cell& cell);

// The first rank of every folder, stage by stage, in the order of ranks. dp and cp do not matter and are not
// read. Throws kBadGrid if two ranks with different parts of the experts would write the same folder.
std::vector<Cell> cells_of_folders(Grid grid);

// The first rank of the whole grid, with its dp and cp, that is in the cell's folder. pre: a cell of
// cells_of_folders().
i64 rank_of_folder(const Grid& grid, const Cell& cell);

}  // namespace mckpt::impl
