// Shards that torch DCP's Hugging Face writer leaves before they are consolidated: each rank has files of
// its own (shard-00003-model-00001-of-00001.safetensors), and each file says in its metadata where its
// pieces belong:
//
//   DCP_SHARDING_INFO = {"tensor name": {"saved_offsets": [5, 0]}, ...}
//
// No file says how large the whole tensor is: it is as large as its pieces reach.
#pragma once

#include <string_view>

namespace mckpt::impl {

class SafetensorsStore;
class SafetensorsTable;

inline constexpr std::string_view kShardingInfoKey = "DCP_SHARDING_INFO";

// Whether the file is such a shard.
bool has_sharding_info(const SafetensorsTable& table);

// Adds the tensors of all files of the store, joined from their pieces. Pieces that do not fit become
// findings.
void add_dcp_shards(SafetensorsStore& store);

}  // namespace mckpt::impl
