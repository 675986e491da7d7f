// One file of Megatron's ranks: plain tensors, of which the names say how ranks cut them.
//
//   mp_rank_01_000, of tp=2 pp=2
//   decoder.layers.0.mlp.linear_fc2.weight   [8, 5] of [8, 10] at [0, 5]  Shard(1)
//   decoder.layers.0.mlp.linear_fc1.weight   [10, 8] of [20, 8] at ?      rows 5-9 of the gate, 5-9 of the rest
#pragma once

#include <optional>

#include "convert/open/shard_facts.h"

namespace mckpt::impl {

class TorchStore;

// Nothing for a file without args, and for one that is a whole model's.
std::optional<ShardFacts> shard_of_megatron(const TorchStore& store);

}  // namespace mckpt::impl
