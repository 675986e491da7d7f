// metadata.pkl of torch_checkpointing: which files a checkpoint has, and how the tensors in them are parts of
// larger ones. It is a pickle of dicts, lists, texts and numbers alone.
//
//   version 2.0   {"metadata": {ITEM: {"nested_path_to_metadata": {'["w"]': [GROUP, ...]},
//                                      "rank_to_layout_info": {RANK: None | {"file_path", ...}}}},
//                  "world_size": 2, "version": "2.0"}
//   version 1.0   {"metadata": {'["ITEM","w"]': [GROUP, ...]},
//                  "rank_to_layout_info_mappings": {RANK: {ITEM: None | {"file_path", ...}}}, "world_size": 2}
//   GROUP         {"sharding_metadata": {"type": "DTensorShardingMetadata", "data": {...}}, "ranks": [0, 1]}
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/int.h"
#include "io/torch/table/boxes.h"
#include "io/torch/table/sharding.h"

namespace mckpt::impl {

class Folder;

// The file of one item of one rank.
struct ItemFile {
  std::string item, path, format;  // "TorchSerialization", "SafetensorsSerialization" ...
  i64 rank = -1;
};

// How ranks have a tensor: a DTensor, or boxes of one rank.
struct ItemSharding {
  TorchSharding layout;
  std::shared_ptr<const std::vector<i64>> ranks;
  std::vector<TorchBox> boxes{};
};

struct ItemMetadata {
  i64 ranks = 0;
  std::string version;
  std::vector<ItemFile> files;
  // By item, and by the parts of the name with dots between them.
  std::map<std::pair<std::string, std::string>, std::vector<ItemSharding>> tensors;

  // Null: nothing is said of the tensor on that rank, so it is whole.
  const ItemSharding* of(const std::string& item, const std::string& name, i64 rank) const;
};

// The metadata of the folder; nothing where it has no such file, or a file of another kind. Throws
// kBadPickle.
std::optional<ItemMetadata> read_item_metadata(const Folder& folder);

}  // namespace mckpt::impl
