// Resharding of a checkpoint whose keys follow no convention, such as dcp.save({"model": .., "optim": ..}): each
// tensor keeps its key, its rows are divided among the ranks as torch's fully_shard divides them, and objects are
// copied as they are.
#pragma once

namespace mckpt::impl {

struct Conversion;
struct PlainSource;
struct ReshardOptions;

// Throws kUnknownPartition for a grid that is not data-parallel alone.
Conversion plan_plain_reshard(PlainSource source, const ReshardOptions& options);

}  // namespace mckpt::impl
