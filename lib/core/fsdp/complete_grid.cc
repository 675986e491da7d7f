// A grid is checked after its data-parallel size is known, and its world is bounded.
#include "core/fsdp/complete_grid.h"

#include "core/base/error.h"

namespace mckpt::impl {
namespace {

// More ranks than there are GPUs in one place. The time of planning grows with the number of ranks: a large
// model takes minutes at this limit.
constexpr i64 kMostRanks = 262'144;

}  // namespace

void refuse_idle_outer(i64 hsdp, HsdpOuter outer) {
  if (hsdp != 1 || outer != HsdpOuter::kShard) return;
  throw Error(Code::kBadGrid, "one HSDP instance alone shares nothing with another")
      .expected("`hsdp` 2 or more")
      .found("`hsdp_outer` shard, and `hsdp` 1")
      .help("leave `hsdp_outer` out");
}

Grid complete_grid(Grid sizes, std::optional<i64> dp) {
  sizes.dp = dp ? *dp : smallest_dp(sizes);
  check_grid(sizes);
  refuse_idle_outer(sizes.hsdp, sizes.outer);
  if (sizes.world() > kMostRanks)
    throw Error(Code::kBadGrid, "the grid has more ranks than any real training run")
        .expected(cat("at most ", with_commas(kMostRanks), " ranks (pp*tp*cp*dp)"))
        .found(cat(with_commas(sizes.world()), " ranks: ", to_string(sizes)))
        .help("choose a smaller `dp`, or other sizes");
  return sizes;
}

Grid grid_of_ranks(Grid sizes, std::optional<i64> dp, i64 ranks) {
  sizes.dp = 1;
  i64 others = complete_grid({.tp = sizes.tp, .cp = sizes.cp, .pp = sizes.pp}, 1).world();
  if (!dp && ranks % others != 0)
    throw Error(Code::kBadGrid, "the ranks of the job do not divide by tp*cp*pp")
        .expected(cat("a multiple of ", others, " (tp=", sizes.tp, " cp=", sizes.cp, " pp=", sizes.pp, ")"))
        .found(ranks)
        .help("start another number of ranks, or choose other sizes");
  return complete_grid(sizes, dp ? *dp : ranks / others);
}

}  // namespace mckpt::impl
