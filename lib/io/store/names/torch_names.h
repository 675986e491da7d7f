// Facts that the names of torch files show.
//
//   model_world_size_4_rank_1.pt       group "model", 4 ranks, rank 1           verl
//   pytorch_model_fsdp_0_rank1.bin     group "pytorch_model_fsdp_0", rank 1     accelerate
//   pytorch_model-00001-of-00002.bin   one of 2 shards
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

// Whether a file of this name is one of torch.save: .pt, .pth, .bin, .ckpt.
bool has_torch_suffix(std::string_view name);

// "model_world_size_4_rank_1.pt" -> group "model", world 4, rank 1. -1: the name does not say.
struct RankName {
  std::string group;
  i64 world = -1, rank = -1;
};
// Nothing for a file of another name.
std::optional<RankName> rank_name(std::string_view file);

// The name of another rank's file of the same set. pre: rank_name(file)
std::string name_of_rank(std::string_view file, i64 rank);

// pytorch_model-00001-of-00002.bin -> 2; -1 for a file of another name.
i64 shard_count(std::string_view file);

// Whether transformers takes a file of this path for a model, or a part of it, by its name: pytorch_model.bin
// and its shards.
bool is_pytorch_model(std::string_view path);

}  // namespace mckpt::impl
