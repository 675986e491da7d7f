// Which tensors, from which item on, differ in the stretches of files that a CompareSink found.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "convert/compare_sink.h"
#include "convert/stored_chunks.h"

namespace mckpt {

// A stretch of a file that holds items of one tensor.
struct Extent {
  i32 file = 0;
  i64 begin = 0, end = 0;
  std::string name;
  i64 item_bytes = 1;
};

Extent extent_of(const ChunkList& chunks, i64 chunk, std::string name);
// Of all chunks. `name`: by key.
std::vector<Extent> extents_of(const ChunkList& chunks, const std::function<std::string(i32)>& name);

struct ItemDifference {
  std::string tensor;
  i32 file = 0;
  i64 offset = 0;  // in the file
  i64 item = 0;    // of what this file holds of the tensor in this place
};

// One a tensor, at the first item that differs. pre: `differences` in order
std::vector<ItemDifference> item_differences(std::span<const CompareSink::Difference> differences,
                                             std::vector<Extent> extents);

}  // namespace mckpt
