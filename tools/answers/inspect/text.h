// The screen of `mckpt inspect`: what the checkpoint is, what it holds, and its tensors as a tree. One call
// of write_card() and one of write_tree() make the screen of one checkpoint.
#pragma once

#include <string>

#include "core/base/int.h"
#include "io/store/summary.h"

namespace mckpt::impl {

class Output;
class Store;
struct PackedBy;
struct ShardFacts;

// Facts about the writer of a checkpoint.
struct About {
  const ShardFacts* shard = nullptr;  // of one rank's file
  const PackedBy* packing = nullptr;  // of a save of Megatron-FSDP
};

// The format, the parts and what is not a tensor. `packed`: the parameters of its quantised tensors.
void write_card(Output& out, const Store& store, const PackedParameters& packed, const std::string& path,
                const About& about);

// The tree of all tensors, layers that are alike folded; `whole`: unfolded, and however long it is.
// `objects`: the names of what is not a tensor below it.
void write_tree(Output& out, const Store& store, bool whole, bool objects, const ShardFacts* shard);

// "1.24 B (1,235,814,400)"; small numbers are printed alone.
std::string human_count(i64 n);

}  // namespace mckpt::impl
