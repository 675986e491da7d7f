// One rank's file as `inspect` and `ls` show it: who the rank is, and of each tensor what the file has.
//
//   rank 1 of 3; mesh [3] at [1]
//   5,590 of 16,790 items are here; of 29 of 31 tensors a part
//
//   tensor             here      whole     at       placements   r0 r1 r2
//   model.norm.weight  [21, 16]  [61, 16]  [21, 0]  Shard(0)     ?? ## ??
#pragma once

#include <span>
#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

class Output;
class Store;
struct ShardFacts;
struct ShardTensor;

// Two lines for the card.
void write_shard_card(Output& out, const Store& store, const ShardFacts& facts);
// "of [61, 16] at [21, 0]  Shard(0)": what a list says behind the local shape.
std::string whole_text(const ShardTensor& tensor);
// The table of these tensors, with a column for each rank: the others' are unknown.
void write_shard_map(Output& out, const Store& store, std::span<const i64> tensors, const ShardFacts& facts);

}  // namespace mckpt::impl
