// Resharding of a checkpoint whose keys follow no convention, such as dcp.save({"model": .., "optim": ..}):
// each tensor keeps its key, its rows are divided among the ranks as torch's fully_shard divides them, and
// objects are copied unchanged.
//
//   [10, 4] over 4 ranks:   rows 0-2, 3-5, 6-8, 9       of ceil(10 / 4) = 3 rows each, the last ones fewer or none
#pragma once

namespace mckpt::impl {

struct Conversion;
struct Opened;
struct ReshardOptions;

// `source`: opened as it is. Throws kUnknownPartition for a grid that is not data-parallel alone, and what
// tensor_job() throws.
Conversion plan_plain_reshard(Opened source, const ReshardOptions& options);

}  // namespace mckpt::impl
