// A checksum is of a record, which may have more than the tensor: FSDP2 pads its storages, a buffer may be a
// slice. Records that are equal have equal tensors at the same place; if they differ, the tensors may still
// be equal.
#include "io/ranks/copies.h"

#include <algorithm>

#include "core/items/shape.h"
#include "io/file/file.h"
#include "io/file/folder.h"
#include "io/torch/store.h"
#include "io/values/element.h"
#include "io/values/strided.h"

namespace mckpt::impl {
namespace {

constexpr i64 kMostBytes = i64{1} << 20;  // of a tensor that is read to be compared

}  // namespace

TorchCopies::Answer TorchCopies::compare_sums(Row a, Row b) const {
  const TorchTable &left = store_.table(a.file), &right = store_.table(b.file);
  const Checksum *sum = store_.record_sum(a.file, a.row), *other = store_.record_sum(b.file, b.row);
  if (sum == nullptr || other == nullptr || store_.big_endian(a.file) != store_.big_endian(b.file) ||
      !std::ranges::equal(left.strides(a.row), right.strides(b.row)))
    return Answer::kUnknown;
  const i64 at = left.offset(a.row) - sum->offset, bytes = left.extent_bytes(a.row);
  const bool same_place = sum->bytes == other->bytes && at == right.offset(b.row) - other->offset;
  if (same_place && sum->crc32 == other->crc32) return Answer::kEqual;
  // Without holes and padding, every byte of the record is one of the tensor.
  const bool whole_record = same_place && sum->bytes == bytes && left.strides(a.row).empty();
  return whole_record ? Answer::kDifferent : Answer::kUnknown;
}

// Row-major. pre: the row has items.
std::vector<u8> TorchCopies::items_of(Row r) const {
  const TorchTable& table = store_.table(r.file);
  const std::span<const i64> dims = table.dims(r.row), strides = table.strides(r.row);
  const i64 item_bytes = dtype_bytes(table.dtype(r.row), 1);
  std::vector<StridedLoop> loops;
  i64 step = 1;
  for (std::size_t d = dims.size(); d-- > 0; step *= dims[d])
    loops.push_back({dims[d], strides.empty() ? step : strides[d], step});
  std::vector<u8> items(static_cast<std::size_t>(step * item_bytes)), scratch;
  InputFile file = folder_.open_file(store_.files()[r.file].path);
  read_strided(file, table.offset(r.row), std::move(loops), item_bytes, items, scratch);
  return items;
}

TorchCopies::Answer TorchCopies::compare(Row a, Row b) {
  const TorchTable &left = store_.table(a.file), &right = store_.table(b.file);
  if (left.dtype(a.row) != right.dtype(b.row) || !std::ranges::equal(left.dims(a.row), right.dims(b.row)))
    return Answer::kDifferent;
  const i64 bytes = dtype_bytes(left.dtype(a.row), Shape(left.dims(a.row)).items());
  if (bytes == 0) return Answer::kEqual;
  if (Answer by_sum = compare_sums(a, b); by_sum != Answer::kUnknown) return by_sum;
  if (bytes > kMostBytes || 2 * bytes > readable_bytes_ ||
      store_.big_endian(a.file) != store_.big_endian(b.file))
    return Answer::kUnknown;
  readable_bytes_ -= 2 * bytes;
  return items_of(a) == items_of(b) ? Answer::kEqual : Answer::kDifferent;
}

std::string TorchCopies::text(Row r) const {
  std::vector<u8> items = items_of(r);
  if (store_.big_endian(r.file))
    std::ranges::reverse(items.begin(), items.begin() + dtype_bytes(store_.table(r.file).dtype(r.row), 1));
  return element_text(store_.table(r.file).dtype(r.row), items.data(), 0);
}

}  // namespace mckpt::impl
