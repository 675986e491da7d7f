// Shape: the sizes of a tensor, outermost first, row-major. Valid by construction: no dimension is negative,
// at most kMaxRank of them, and the number of items fits 63 bits.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

// A value of fixed sizes: it is replaced and never changed. Up to four dimensions are stored in the object,
// more on the heap.
class Shape {
 public:
  static constexpr int kMaxRank = 64;  // torch's own limit

  Shape() = default;  // a scalar: rank 0, one item
  Shape(std::initializer_list<i64> sizes) : Shape(std::span(sizes.begin(), sizes.size())) {}
  // throws kBadShape or kSizeOverflow.
  explicit Shape(std::span<const i64> sizes);

  int rank() const { return rank_; }
  i64 operator[](int d) const { return dims()[d]; }
  std::span<const i64> dims() const {
    return {rank_ <= kInline ? inline_.data() : heap_.data(), static_cast<std::size_t>(rank_)};
  }
  i64 items() const { return items_; }
  // Items of one row: the product of all dimensions but the first; 1 for vectors and scalars.
  i64 row_items() const;
  // The same sizes with dimension d replaced. pre: 0 <= d < rank().
  Shape with_dim(int d, i64 size) const;

  friend bool operator==(const Shape& a, const Shape& b) {
    return std::equal(a.dims().begin(), a.dims().end(), b.dims().begin(), b.dims().end());
  }

 private:
  static constexpr int kInline = 4;  // enough for nearly all real tensors

  int rank_ = 0;
  i64 items_ = 1;
  std::array<i64, kInline> inline_{};
  std::vector<i64> heap_;
};

// The number of items of a tensor of these sizes. Throws as Shape does.
i64 checked_items(std::span<const i64> sizes);

std::string to_string(const Shape& shape);              // "[4096, 128]"
std::string dims_to_string(std::span<const i64> dims);  // the same for offsets and sizes of boxes
void append_dims(std::string& out, std::span<const i64> dims);

}  // namespace mckpt::impl
