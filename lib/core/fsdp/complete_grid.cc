#include "core/fsdp/complete_grid.h"

#include "core/base/error.h"

namespace mckpt::impl {
namespace {

// More ranks than there are GPUs in one place. The time of planning grows with the number of ranks: a large
// model takes minutes at this limit.
constexpr i64 kMostRanks = 262'144;

}  // namespace

Grid complete_grid(Grid sizes, std::optional<i64> dp) {
  sizes.dp = dp ? *dp : smallest_dp(sizes);
  check_grid(sizes);
  if (sizes.world() > kMostRanks)
    throw Error(Code::kBadGrid, "the grid has more ranks than any real training run")
        .expected(cat("at most ", with_commas(kMostRanks), " ranks (pp*tp*cp*dp)"))
        .found(cat(with_commas(sizes.world()), " ranks: ", to_string(sizes)))
        .help("choose a smaller `dp`, or other sizes");
  return sizes;
}

}  // namespace mckpt::impl
