// Which part of a tensor is meant: "w[0:4, :8]", "w[-1]", "w[..., 3]", as Python would take it, without
// steps.
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

// "name[...]" -> the name and what stands in the brackets; no brackets: the text is the name and all of it is
// meant.
struct SlicedName {
  std::string name, slice;
  bool sliced = false;
};
SlicedName split_sliced_name(std::string_view text);

// One range a dimension; dimensions that the slice does not name are whole. Ranges are cut to the dimension,
// as in Python; a single index that is not in it throws kUsage, as text that is no slice does.
std::vector<SliceRange> parse_slice(std::string_view slice, std::span<const i64> dims);

}  // namespace mckpt::impl
