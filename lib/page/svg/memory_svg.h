// The memory of a rank as a drawing: a bar for each engine and strategy, of weights, main weights, gradients
// and moments, and behind it what the largest unit takes while it is gathered:
//
//   v1  no_shard            |wwww|mmmmmmmm|gggggggg|oooooooooooooooo|   137.6 MiB
//   v1  optim_grads_params  |w|mm|gg|oooo|..|                            34.7 MiB and 2.1 MiB gathered
#pragma once

#include <string>

namespace mckpt::impl {

struct MemoryPicture;

std::string memory_svg(const MemoryPicture& picture);

}  // namespace mckpt::impl
