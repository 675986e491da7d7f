// Checks sizes and multiplies them without overflow. A size of 0 anywhere makes the product 0, so [2^62, 4,
// 0] is a valid shape of no items.
#include "core/items/shape.h"
#include "core/base/error.h"

#include <algorithm>

namespace mckpt::impl {
namespace {

// The product; 0 if any size is 0, whatever the others are: [2^62, 4, 0] has no items and is not an overflow.
i64 product(std::span<const i64> sizes, const char* what) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
  i64 n = 1;
  for (i64 size : sizes) n = checked_mul(n, size, what);
  return n;
}

}  // namespace

// The limit of dimensions is the readers' limit; torch has 64 too.
i64 checked_items(std::span<const i64> sizes) {
  if (sizes.size() > Shape::kMaxRank)
    throw Error(Code::kBadShape, "too many dimensions")
        .expected(cat("at most ", Shape::kMaxRank))
        .found(sizes.size());
  for (i64 n : sizes)
    if (n < 0)
      throw Error(Code::kBadShape, cat("a dimension of ", dims_to_string(sizes), " is negative"))
          .expected("0 or more")
          .found(n);
  return product(sizes, "the number of items of a shape");
}

// Up to kInline sizes are stored in the object itself, as nearly all tensors have no more.
Shape::Shape(std::span<const i64> sizes) : items_(checked_items(sizes)) {
  rank_ = static_cast<int>(sizes.size());
  if (rank_ <= kInline)
    std::copy(sizes.begin(), sizes.end(), inline_.begin());
  else
    heap_.assign(sizes.begin(), sizes.end());
}

i64 Shape::row_items() const {
  return rank_ == 0 ? 1 : product(dims().subspan(1), "the number of items of a row");
}

Shape Shape::with_dim(int d, i64 size) const {
  std::vector<i64> sizes(dims().begin(), dims().end());
  sizes[d] = size;
  return Shape(sizes);
}

void append_dims(std::string& out, std::span<const i64> dims) {
  out += '[';
  for (std::size_t i = 0; i < dims.size(); i++) {
    if (i > 0) out += ", ";
    append_one(out, dims[i]);
  }
  out += ']';
}

// "[8, 4]"; "[]" for a scalar.
std::string dims_to_string(std::span<const i64> dims) {
  std::string out;
  append_dims(out, dims);
  return out;
}

std::string to_string(const Shape& shape) { return dims_to_string(shape.dims()); }

}  // namespace mckpt::impl
