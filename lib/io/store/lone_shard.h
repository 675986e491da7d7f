// The file of one rank, opened by itself: of most tensors it has a part, and the others' are in files that
// were not opened.
//
//   the store            w [71, 4], one chunk: rows 24-47          a hole before and after it
//   local_values()       w [24, 4], one chunk: rows 0-23           the tensor that the rank had in memory
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;

// The help for who has opened one.
inline constexpr const char* kNameAllRanks = "name the folder with the files of all ranks";

// Whether opening found that the file is one of several ranks' (kShardAlone).
bool is_lone_shard(const Store& store);

// The shape of what the file has of the tensor: of one box, or of several that are a grid and are put one
// after the other, as the layers and experts of a rank. Nothing where the file has nothing, or boxes are
// otherwise.
std::optional<std::vector<i64>> local_shape(const Store& store, i64 tensor);
// Where that begins in the tensor; nothing also where other items are between the boxes.
std::optional<std::vector<i64>> local_offsets(const Store& store, i64 tensor);

// A lone shard as tensors of their local shapes, so that its values can be read; any other store as it is.
std::unique_ptr<Store> local_values(std::unique_ptr<Store> store);
// The same of a store that others have too, or that outlives the result; of one that is not a lone shard, a
// view that changes nothing.
std::unique_ptr<Store> local_view(std::shared_ptr<const Store> store);
std::unique_ptr<Store> local_view(const Store& store);

}  // namespace mckpt::impl
