// Slices, by which a user names a part of a tensor, as Python would read them, without steps:
//
//   of a tensor "w" [10, 8]      w[0:4, :3]    rows 0..3, columns 0..2
//                                w[-1]         row 9; the result has one dimension, of 8
//                                w[..., 3]     column 3
//                                w[8:99]       rows 8 and 9: ranges are cut to the dimension
//                                w[10]         an error: an index is not
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

// The range of one dimension. A single index drops the dimension from the result.
struct SliceRange {
  i64 begin = 0, end = 0;
  bool single = false;
};

// A text "name[slice]" in its parts.
struct SlicedName {
  std::string name, slice;
  bool sliced = false;
};
// Without brackets at the end, the text is the name, and the whole tensor is meant.
SlicedName split_sliced_name(std::string_view text);

// One range for each dimension; dimensions that the slice does not name are whole. Throws kUsage for an index
// outside its dimension, too many indexes, a step, and a text that is not a slice.
std::vector<SliceRange> parse_slice(std::string_view slice, std::span<const i64> dims);

}  // namespace mckpt::impl
