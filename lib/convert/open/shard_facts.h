// One rank's file, looked at: the mesh that the ranks form, the rank's place in it, and for each tensor what
// the file has of it, where that is, and how big the whole is.
//
//   rank 1 of 3; mesh [3]; at [1]
//   model.norm.weight     [21] of [61]  at [21]    Shard(0)
//   model.norm.weight     [64]          the whole  whole
//
// A file of FSDP2, verl or accelerate says all of it but for the place of a piece that is not an even cut.
// The .metadata of its folder describes a .distcp file, and the packing, if it is recognised, tells the mesh.
// A file of Megatron's ranks has plain tensors: args say the sizes of the grid, the folder is named by the
// rank's places in it, and the names of its modules say which dimension is cut (megatron_shard.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;

// In place of placements: the file has the whole tensor, whether other ranks have it too or not.
inline constexpr std::string_view kWholeHere = "whole";

// A dimension of the mesh; `name` is empty where the file does not say it.
struct ShardAxis {
  std::string name;
  i64 size = 1;
  i64 at = -1;  // the rank's place; -1: unknown
};

// One tensor of the file.
struct ShardTensor {
  i64 tensor = 0;
  std::vector<i64> local{};                 // what the file has
  std::optional<std::vector<i64>> whole{};  // nothing: unknown
  // The place of the file's one box in the whole. Nothing: the file does not tell the place, or it has
  // several boxes with gaps between them, as a gated MLP or a strided shard has.
  std::optional<std::vector<i64>> offsets{};
  std::string placements{};  // "Shard(0)", "Replicate, Shard(1)"; kWholeHere; "" where nothing tells
};

struct ShardFacts {
  i64 rank = -1, ranks = -1;  // -1: unknown
  std::vector<ShardAxis> mesh{};
  std::vector<ShardTensor> tensors{};  // all of the store, in its order
  std::vector<std::string> remarks{};  // what the file's own facts contradict
};

// Nothing for a store that is not one rank's file.
std::optional<ShardFacts> shard_facts(const Store& store);

// "rank 1 of 3; mesh [3] at [1]", "rank 5 of 8; mesh tp=2 dp=4 at tp 1, dp 2"
std::string to_string(const ShardFacts& facts);

}  // namespace mckpt::impl
