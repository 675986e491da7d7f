// The shard map as a drawing: a line for each kind of tensor, a cell for each rank or file, as on the page
// (html/boxes.js), but without anything that moves. It suits a README, a report or a slide.
#pragma once

#include <string>

namespace mckpt::impl {

struct CheckpointPicture;

std::string shard_map_svg(const CheckpointPicture& picture);

}  // namespace mckpt::impl
