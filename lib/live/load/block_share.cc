// Goes through all blocks in order and gives each to the rank that needs it and has the fewest to read so
// far; a block goes into the present round unless a rank would send or receive too many. The cost is a sort
// of all ranks' lists.
#include "live/load/block_share.h"

#include <algorithm>
#include <tuple>

namespace mckpt::impl {

BlockShare::BlockShare(std::span<const std::vector<u64>> needed, int rank, i64 round_blocks) {
  // One rank's need of one block; `index` is the block's number in that rank's list.
  struct Need {
    u64 block;
    int rank;
    i64 index;
  };
  std::vector<Need> needs;
  for (std::size_t r = 0; r < needed.size(); r++)
    for (std::size_t i = 0; i < needed[r].size(); i++)
      needs.push_back({needed[r][i], static_cast<int>(r), static_cast<i64>(i)});
  std::ranges::sort(needs, {}, [](const Need& n) { return std::tuple(n.block, n.rank); });

  std::vector<i64> reads(needed.size()), sent(needed.size()), received(needed.size());
  auto begin_round = [&] {
    rounds_.emplace_back();
    std::ranges::fill(sent, 0);
    std::ranges::fill(received, 0);
  };
  auto at = [](std::vector<i64>& counts, int r) -> i64& { return counts[static_cast<std::size_t>(r)]; };
  for (std::size_t i = 0, end; i < needs.size(); i = end) {
    for (end = i + 1; end < needs.size() && needs[end].block == needs[i].block;) end++;
    std::span<const Need> of_block = std::span(needs).subspan(i, end - i);
    int reader = std::ranges::min(of_block, {}, [&](const Need& n) { return at(reads, n.rank); }).rank;
    at(reads, reader)++;
    if (of_block.size() == 1) {
      if (reader == rank) own_.push_back(of_block[0].index);
      continue;
    }
    // A block does not fit into the round if its reader would send, or one of the others would receive, too
    // many.
    bool full = at(sent, reader) == round_blocks;
    for (const Need& n : of_block) full |= n.rank != reader && at(received, n.rank) == round_blocks;
    if (rounds_.empty() || full) begin_round();
    at(sent, reader)++;
    Send send;
    for (const Need& n : of_block) {
      if (n.rank == reader) {
        send.block = n.index;
        continue;
      }
      at(received, n.rank)++;
      send.to.push_back(n.rank);
      if (n.rank == rank) rounds_.back().receives.push_back({n.index, reader});
    }
    if (reader == rank) rounds_.back().sends.push_back(std::move(send));
  }
  blocks_read_ = at(reads, rank);
}

}  // namespace mckpt::impl
