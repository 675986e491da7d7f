// Reads the items of one chunk: as one stretch, at strides, or byte-swapped. Where the items are is checked
// once, at construction, with checked arithmetic, because sizes and strides come from the file.
#include "io/values/chunk_reader.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "io/file/file.h"
#include "io/values/strided.h"

namespace mckpt::impl {
namespace {

// Each part of an element is swapped by itself: a complex number has two.
void swap_bytes(std::span<u8> bytes, const DTypeInfo& type) {
  std::size_t width = static_cast<std::size_t>(type.bits / 8 / (type.kind == DTypeKind::kComplex ? 2 : 1));
  for (std::size_t i = 0; i + width <= bytes.size(); i += width)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                 bytes.begin() + static_cast<std::ptrdiff_t>(i + width));
}

}  // namespace

ChunkReader::ChunkReader(std::shared_ptr<const ByteSource> file, ChunkData data, std::span<const i64> sizes,
                         i64 strided_bytes)
    : file_(std::move(file)),
      data_(std::move(data)),
      sizes_(sizes),
      strided_bytes_(strided_bytes),
      item_bytes_(dtype_info(data_.dtype).bits / 8) {
  check_inside();
  if (!data_.strides.empty() && is_row_major(sizes_, data_.strides)) data_.strides.clear();
  if (!plain() && dtype_info(data_.dtype).bits % 8 != 0)
    throw Error(Code::kBadExtent, "elements smaller than a byte cannot have strides")
        .found(dtype_name(data_.dtype));
}

void ChunkReader::check_inside() const {
  i64 items = Shape(sizes_).items();
  if (items == 0) return;
  i64 bytes = 0;
  if (data_.strides.empty()) {
    bytes = dtype_bytes(data_.dtype, items);
  } else {
    i64 last = 0;
    for (std::size_t d = 0; d < sizes_.size(); d++) {
      if (data_.strides[d] < 0) throw Error(Code::kBadExtent, "a stride is negative").found(data_.strides[d]);
      last =
          checked_add(last, checked_mul(sizes_[d] - 1, data_.strides[d], "a stride"), "the extent of a view");
    }
    bytes = checked_mul(checked_add(last, 1, "the extent of a view"), item_bytes_, "the extent of a view");
  }
  if (data_.offset < 0 || data_.offset > file_->size() || bytes > file_->size() - data_.offset)
    throw Error(Code::kBadExtent, "the items of a tensor are beyond the end of the file")
        .offset(data_.offset)
        .expected(cat("at most ", file_->size(), " bytes"))
        .found(cat("bytes ", data_.offset, " to ", data_.offset, " + ", bytes));
}

void ChunkReader::read(i64 first, std::span<u8> to) {
  if (data_.strides.empty()) {
    file_->read(data_.offset + first * item_bytes_, to);
  } else {
    while (!to.empty()) {
      i64 box_items = static_cast<i64>(box_.size()) / item_bytes_;
      if (first < box_begin_ || first >= box_begin_ + box_items) {
        load_box(first);
        continue;
      }
      std::span<const u8> have =
          std::span(box_).subspan(static_cast<std::size_t>((first - box_begin_) * item_bytes_));
      std::size_t n = std::min(have.size(), to.size());
      std::memcpy(to.data(), have.data(), n);
      to = to.subspan(n);
      first += static_cast<i64>(n) / item_bytes_;
    }
    return;  // boxes are swapped when they are loaded
  }
  if (data_.big_endian) swap_bytes(to, dtype_info(data_.dtype));
}

// Loads the box that contains the item: a range of one dimension, everything of the dimensions behind it, one
// index of each dimension before it. With sizes [8, 100, 50] and room for 2,000 items: 40 indexes of
// dimension 1, all 50 of dimension 2, one of dimension 0. The box is as large as allowed, because a row of
// the tensor may be a column in the file: then the items of each box, small or large, are spread over the
// whole file.
void ChunkReader::load_box(i64 item) {
  i64 most = std::max<i64>(1, strided_bytes_ / item_bytes_), below = 1;
  std::size_t d = sizes_.size();
  while (d > 0 && sizes_[d - 1] <= most / below) below *= sizes_[--d];
  std::vector<StridedLoop> loops;
  i64 memory_stride = 1;
  for (std::size_t i = sizes_.size(); i > d; i--) {
    loops.push_back({sizes_[i - 1], data_.strides[i - 1], memory_stride});
    memory_stride *= sizes_[i - 1];
  }
  i64 row = item / below, count = 1, position = 0;
  if (d > 0) {
    i64 step = std::max<i64>(1, most / below), index = row % sizes_[d - 1];
    i64 begin = index - index % step;
    count = std::min(step, sizes_[d - 1] - begin);
    row -= index - begin;
    loops.push_back({count, data_.strides[d - 1], below});
  }
  box_begin_ = row * below;
  for (i64 rest = row; d > 0; d--) {
    position += rest % sizes_[d - 1] * data_.strides[d - 1];
    rest /= sizes_[d - 1];
  }
  box_.resize(static_cast<std::size_t>(count * below * item_bytes_));
  read_strided(*file_, data_.offset + position * item_bytes_, std::move(loops), item_bytes_, box_, scratch_);
  if (data_.big_endian) swap_bytes(box_, dtype_info(data_.dtype));
}

}  // namespace mckpt::impl
