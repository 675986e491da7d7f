// CheckpointPicture: everything that a picture of a checkpoint, or of a planned one, shows. Pages and
// drawings are made of it alone.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/store/finding.h"
#include "io/store/summary.h"
#include "page/data/layer_values.h"
#include "page/data/shard_map.h"
#include "page/data/size_tree.h"

namespace mckpt::impl {

class Observer;
class Store;

struct CheckpointPicture {
  std::string title;     // the path, as it was given
  bool planned = false;  // no file has it yet
  std::string format;    // "DCP fsdp_dtensor", or what a planned one is
  std::vector<std::pair<std::string, std::string>> facts{};
  StoreSummary summary{};  // of the whole checkpoint
  i64 files = 0, ranks = 1;
  i64 all_tensors = 0;   // of the checkpoint, chosen or not
  std::string choice{};  // the glob or expression that chose the tensors; "": all
  std::vector<Finding> findings{};
  ShardMap map{};
  SizeTree sizes{};
  std::optional<LayerValues> values{};  // none: no data were read
};

// The picture of these tensors, in natural order, from headers alone. Throws kSizeOverflow.
CheckpointPicture checkpoint_picture(const Store& store, std::span<const i64> tensors, std::string title);

// Reads the values of the tensors, and adds what they are like. Throws what tensor_stats() throws.
void add_values(CheckpointPicture& picture, const Store& values, std::span<const i64> tensors, int threads,
                Observer& observer);

}  // namespace mckpt::impl
