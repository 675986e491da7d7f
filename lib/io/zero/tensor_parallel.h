// Parameters that DeepSpeed's AutoTP split among tensor-parallel ranks, joined by the map that is stored with
// the model (affine_map.h). Each rank has a save of its own, in which a parameter is its shard:
//
//   mp_rank_00   w [2, 4], at item 0 of its part      map: rows 0, 1 of the whole       w [4, 4]: 2 boxes
//   mp_rank_01   w [2, 4], at item 0 of its part      map: rows 2, 3
//   both         norm [4]                             map: all items, on both ranks     norm [4]: 1 box and a copy
#pragma once

#include <span>

namespace mckpt::impl {

class Folder;
class ZeroStore;
struct ZeroSave;

// Whether the saves belong to tensor-parallel ranks.
bool is_tensor_parallel(std::span<const ZeroSave> saves);

// Makes the tensors of the store. Ranks that are missing become findings and leave holes. Throws
// kUnsupportedTorchFile where no map says how a parameter is split, kBadShards for a map that contradicts
// itself, the files or the map of another rank.
void assemble_tensor_parallel(std::span<const ZeroSave> saves, const Folder& folder, ZeroStore& store);

}  // namespace mckpt::impl
