// The parts of a fused parameter and the items of the ranks as a drawing; below the items of each rank the
// parts into which the rule of local counts puts them:
//
//   parts      |######## W ########|######## V ########|
//   rank 1                    |####|############|              [16, 32)   W 4, V 12
//                             |- - - - - - - - -|              0 right, 0 wrong, 16 lost
#pragma once

#include <string>

namespace mckpt::impl {

struct FusedPicture;

std::string fused_svg(const FusedPicture& picture);

}  // namespace mckpt::impl
