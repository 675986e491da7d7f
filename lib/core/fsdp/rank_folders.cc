// The pair (tp, ep) of a rank repeats after lcm(TP, ETP*EP) ranks, so the ranks of the smallest stage that
// the grid can have show every folder.
#include "core/fsdp/rank_folders.h"

#include <algorithm>
#include <map>

#include "core/base/error.h"

namespace mckpt::impl {
namespace {

// At least so many digits.
std::string padded(i64 number, std::size_t digits) {
  std::string text = cat(number);
  return std::string(digits - std::min(digits, text.size()), '0') + text;
}

}  // namespace

std::vector<i64> rank_folder_numbers(std::string_view name) {
  std::vector<i64> out;
  if (!name.starts_with(kRankFolderFront)) return out;
  name.remove_prefix(kRankFolderFront.size());
  while (true) {
    std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
    if (digits == 0 || digits > 9 || out.size() == 3) return {};
    i64 n = 0;
    for (char c : name.substr(0, digits)) n = n * 10 + (c - '0');
    out.push_back(n);
    name.remove_prefix(digits);
    if (name.empty()) return out;
    if (name[0] != '_') return {};
    name.remove_prefix(1);
  }
}

std::string rank_folder(const Grid& grid, const Cell& cell) {
  std::string name = cat(kRankFolderFront, padded(cell.tp, 2));
  if (grid.pp > 1) name += cat("_", padded(cell.pp, 3));
  if (grid.ep > 1) name += cat("_", padded(cell.ep, 3));
  return name;
}

namespace {

Grid with_smallest_stage(Grid grid) {
  grid.cp = grid.hsdp = 1;
  grid.dp = smallest_dp(grid);
  check_grid(grid);
  return grid;
}

}  // namespace

i64 rank_of_folder(const Grid& grid, const Cell& cell) {
  return cell.pp * grid.stage_ranks() + cell.rank % with_smallest_stage(grid).stage_ranks();
}

std::vector<Cell> cells_of_folders(Grid grid) {
  grid = with_smallest_stage(grid);
  std::vector<Cell> out;
  std::map<std::string, i64> etp_of;  // by folder
  for (i64 rank = 0; rank < grid.world(); rank++) {
    Cell cell = cell_of(grid, rank);
    std::string folder = rank_folder(grid, cell);
    auto [at, first] = etp_of.try_emplace(folder, cell.etp);
    if (first) out.push_back(cell);
    if (at->second != cell.etp)
      throw Error(Code::kBadGrid, "two ranks with different parts of the experts have one folder")
          .expected(cat("a `tp` that `etp` ", grid.etp, " divides"))
          .found(cat("`tp` ", grid.tp))
          .note(cat(folder, " is the folder of ranks of etp ", at->second, " and of etp ", cell.etp))
          .help("choose another `tp` or `etp`");
  }
  return out;
}

}  // namespace mckpt::impl
