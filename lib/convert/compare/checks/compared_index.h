// Indexes of weights on two sides, such as model.safetensors.index.json, for a comparison of the files beside
// the tensors. The list of names and files belongs to the shards, which may be cut in another way:
//
//   {"metadata": {"total_size": 8, "format": "pt"}, "weight_map": {"w": "model-00001-of-00002.safetensors"}}
//   {"metadata": {"total_size": 5, "format": "pt"}, "weight_map": {"w": "model-00001-of-00004.safetensors"}}
//
//   .metadata.total_size   8 | 5
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "convert/compare/differences/json_values.h"

namespace mckpt::impl {

class Folder;
class Store;

// The folder of one side, with the store that was opened there.
struct IndexSide {
  const Folder& folder;
  const Store& store;
};

// The differences of everything but the lists; `only_a`, `only_b`: entries of the metadata that were left
// out, as one side alone has them.
struct IndexDifferences {
  JsonDifferences values{};
  std::vector<std::string> only_a{}, only_b{};
};

// A total_size that is on each side the sum of its tensors is left out, as the tensors are compared; and so
// is a total_parameters that one side alone has. Nothing for an index that is not JSON. `most`: how many are
// listed. `of_both`: entries of the metadata that one side alone has are left out, too: a conversion writes
// an index anew, and keeps none of them.
std::optional<IndexDifferences> differences_of_indexes(const std::string& name, const IndexSide& a,
                                                       const IndexSide& b, i64 most, bool of_both);

}  // namespace mckpt::impl
