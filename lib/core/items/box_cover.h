// Checks that boxes tile a tensor: all are inside it, and every item is in exactly one of them. Faults are
// boxes: a hole is a box that no chunk covers, an overlap is two chunks and the box they share.
//
//   tensor [4, 4], boxes of rows [0, 2) and [3, 4)    ->   hole: offsets [2, 0], sizes [1, 4]
//   tensor [4, 4], boxes of rows [0, 3) and [2, 4)    ->   overlap of boxes 0 and 1: offsets [2, 0], sizes [1, 4]
//
// Tensors of any rank; boxes of zero items are allowed up to the far edge. n boxes of a grid take n log n
// steps; nothing of the size of the tensor is allocated.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

// One thing that is wrong with the boxes, and where.
struct BoxFault {
  enum class Kind : u8 {
    kOutside,    // box `first` reaches out of the tensor, or has a negative offset or size
    kHole,       // no box covers this part
    kOverlap,    // boxes `first` and `second` both cover this part
    kIrregular,  // so many cuts cross each other that the check was stopped
  };
  Kind kind = Kind::kHole;
  i64 first = -1, second = -1;  // positions in the list of boxes
  std::vector<i64> offsets, sizes;
};

// The boxes, one after the other: box i has offsets[i*rank, (i+1)*rank) and the like sizes, where rank is
// extent.size(). `count` is a parameter because the boxes of a scalar have no numbers. Returns at most `most`
// faults, boxes outside first; none: the boxes tile [0, extent). A grid needs one look at each box for every
// halving of the tensor. After `effort` times as many looks the check stops, so that boxes made to be hard
// cannot take for ever. pre: no extent is negative; offsets and sizes contain count*rank numbers.
std::vector<BoxFault> cover_faults(std::span<const i64> extent, std::span<const i64> offsets,
                                   std::span<const i64> sizes, i64 count, std::size_t most = 8,
                                   i64 effort = 16);

// "a hole: no chunk covers offsets [4, 0], sizes [2, 4]"; `box` is what the caller calls a box.
std::string to_string(const BoxFault& fault, std::string_view box = "chunk");

}  // namespace mckpt::impl
