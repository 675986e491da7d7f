// Whether the files of a Megatron run's ranks are in the folders of their ranks, as far as they say it: the
// args that Megatron saves have the `rank` of the process that saved them.
//
//   mp_rank_01/model_optim_rng.pt   args: rank 2, tensor_model_parallel_size 2   -->  belongs in mp_rank_00
//
// Programs that write all files in one process leave the same rank in all of them, which says nothing, and
// others leave no rank at all. Then only a manifest or a card tells files that changed places.
#pragma once

#include <vector>

#include "io/store/finding.h"

namespace mckpt::impl {

class Store;

struct RankOrder {
  bool said = false;                // each file says its rank
  std::vector<Finding> findings{};  // files in the folder of another rank
};

// pre: a store of files of Megatron's ranks. Args that cannot be read say nothing.
RankOrder rank_order(const Store& store);

}  // namespace mckpt::impl
