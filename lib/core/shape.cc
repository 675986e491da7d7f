#include "core/shape.h"

#include <algorithm>

namespace mckpt {

Shape::Shape(std::span<const i64> sizes) {
  if (sizes.size() > kMaxRank)
    throw Error(Code::kBadShape, "too many dimensions")
        .expected(cat("at most ", kMaxRank))
        .found(sizes.size());
  rank_ = static_cast<int>(sizes.size());
  if (rank_ <= kInline)
    std::copy(sizes.begin(), sizes.end(), inline_.begin());
  else
    heap_.assign(sizes.begin(), sizes.end());
  bool empty = false;
  for (i64 n : sizes) {
    if (n < 0)
      throw Error(Code::kBadShape, cat("a dimension of ", dims_to_string(sizes), " is negative"))
          .expected("0 or more")
          .found(n);
    empty |= n == 0;
  }
  // A zero anywhere makes the tensor empty, whatever the other sizes: [2^62, 4, 0] has no items, not an
  // overflow.
  items_ = empty ? 0 : 1;
  if (!empty)
    for (i64 n : sizes) items_ = checked_mul(items_, n, "the number of items of a shape");
}

i64 Shape::row_items() const {
  i64 n = 1;
  for (int d = 1; d < rank_; d++) n = checked_mul(n, (*this)[d], "the number of items of a row");
  return n;
}

Shape Shape::with_dim(int d, i64 size) const {
  std::vector<i64> sizes(dims().begin(), dims().end());
  sizes[static_cast<std::size_t>(d)] = size;
  return Shape(sizes);
}

std::string dims_to_string(std::span<const i64> dims) {
  std::string out = "[";
  for (std::size_t i = 0; i < dims.size(); i++) out += cat(i ? ", " : "", dims[i]);
  return out + "]";
}

std::string to_string(const Shape& shape) { return dims_to_string(shape.dims()); }

}  // namespace mckpt
