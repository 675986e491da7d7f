// Shards that torch DCP's Hugging Face writer leaves before they are consolidated: each rank has files of its
// own (shard-00003-model-00001-of-00001.safetensors), and each file says in its metadata where its pieces
// belong:
//
//   DCP_SHARDING_INFO = {"tensor name": {"saved_offsets": [5, 0]}, ...}
//
// The global shape stands nowhere: it is as far as the pieces reach.
#pragma once

#include <string_view>

namespace mckpt::impl {

class SafetensorsStore;
class SafetensorsTable;

inline constexpr std::string_view kShardingInfoKey = "DCP_SHARDING_INFO";

bool has_sharding_info(const SafetensorsTable& table);

// Adds the tensors of all files of the store, pieced together. Pieces that do not fit become findings.
void add_dcp_shards(SafetensorsStore& store);

}  // namespace mckpt::impl
