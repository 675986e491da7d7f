// RankDump: what one rank of a training run says that it holds, without the values: a JSON file that
// `mckpt/rank_dump.py` of the Python package writes inside the training process.
//
//   {"schema": "mckpt.rank_dump/1", "rank": 1, "world": 2, "tensors": [
//    {"name": "module.decoder.final_layernorm.weight", "dtype": "bfloat16", "shape": [32], "local_shape": [32],
//     "offset": [0], "placements": [], "attributes": {"sequence_parallel": true}, "sha256": "5e0f..."}, ...]}
//
// A DTensor has its global shape as `shape`, and its placements; `offset` is null if nobody knows where the
// rank's part begins. The digest is of the contiguous bytes of the rank's part.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

struct OpenOptions;

inline constexpr std::string_view kRankDumpSchema = "mckpt.rank_dump/1";

// The attributes of Megatron that a parameter has; none: it does not have the attribute.
struct DumpedAttributes {
  std::optional<bool> tensor_model_parallel{}, sequence_parallel{}, allreduce{};
  std::optional<i64> partition_dim{}, partition_stride{};

  bool any() const {
    return tensor_model_parallel || sequence_parallel || allreduce || partition_dim || partition_stride;
  }
};

struct DumpedTensor {
  std::string name{};
  std::string dtype{};                       // as torch spells it, without "torch."
  std::vector<i64> shape{};                  // of the DTensor; of a plain tensor its own
  std::vector<i64> sizes{};                  // of the rank's part
  std::optional<std::vector<i64>> offset{};  // where the part begins in `shape`
  std::vector<std::string> placements{};     // of a DTensor, one for each dimension of its mesh
  DumpedAttributes attributes{};
  std::string sha256{};
};

struct RankDump {
  std::string path{};
  i64 rank = 0, world = 1;
  std::vector<DumpedTensor> tensors{};  // in the order of the model
};

// Whether the path is a file that begins as a dump does. Throws what opening the file throws, but nothing for
// a path that is not a file.
bool is_rank_dump(const std::string& path, const OpenOptions& opening);

// Throws kBadJson with the file for a text that is not such a dump, also for a part that is outside its
// tensor, a name that is there twice and a rank that the run does not have, and what reading throws.
RankDump read_rank_dump(const std::string& path, const OpenOptions& opening);

}  // namespace mckpt::impl
