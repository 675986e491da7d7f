// convert reshard --any-model of a checkpoint whose keys follow no convention, such as dcp.save({"model": ..,
// "optim": .., "rng": ..}): every tensor under its own key, its rows over the ranks as torch's fully_shard
// has them. Objects go along as they are.
#pragma once

#include <memory>

#include "convert/plan/conversion.h"
#include "core/fsdp/grid.h"

namespace mckpt {

struct PlainReshard {
  std::unique_ptr<Store> source;
  std::string target;
  std::optional<i64> iteration;
  Grid grid;
  bool weights_only = false;

  // Throws kUnknownPartition for a grid that is not data-parallel alone.
  ConversionPlan plan();
};

}  // namespace mckpt
