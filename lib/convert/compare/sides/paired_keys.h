// The keys of one model on the two sides of a comparison, for each tensor of the source.
#pragma once

#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class CheckpointModel;
class Store;

// A tensor of the source: its key in the tables of the two sides, -1 where a table lacks it.
struct PairedKey {
  i32 from = -1, to = -1;
  bool resized = false;  // the vocabulary or a state of it, with other rows on the tested side
};

// By tensor of `source`, the store that `from` reads. A state of the optimizer has the key of its parameter.
std::vector<PairedKey> paired_keys(const Store& source, const CheckpointModel& from,
                                   const CheckpointModel& to);

}  // namespace mckpt::impl
