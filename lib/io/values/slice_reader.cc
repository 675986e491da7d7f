// Splits a slice into stretches of neighbouring items. The innermost dimensions that are taken whole, and the
// one before them, make one stretch; the other dimensions are counted through like an odometer:
//
//   w [2, 3, 4], slice [:, 1:3, :]      dimension 0: counted, 2 stretches
//                                       dimensions 1 and 2: a stretch of 2 * 4 items from item 1 * 4 on
#include "io/values/slice_reader.h"

#include <cstring>

#include "core/base/error.h"
#include "core/items/dtype.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

bool is_whole(std::span<const SliceRange> ranges, std::span<const i64> dims) {
  for (std::size_t d = 0; d < dims.size(); d++)
    if (ranges[d].begin != 0 || ranges[d].end != dims[d]) return false;
  return true;
}

// Steps to the next index of the first dimensions of the ranges, the last of them fastest. Returns false
// after the last index.
bool advance(std::vector<i64>& index, std::span<const SliceRange> ranges) {
  for (std::size_t d = index.size(); d-- > 0; index[d] = ranges[d].begin)
    if (++index[d] < ranges[d].end) return true;
  return false;
}

}  // namespace

i64 SliceReader::bytes(const Store& store, i64 tensor, std::span<const SliceRange> ranges) {
  if (is_whole(ranges, store.dims(tensor))) return TensorReader::tensor_bytes(store, tensor);
  int bits = dtype_info(store.dtype(tensor)).bits;
  if (bits % 8 != 0)
    throw Error(Code::kUsage, "a part of a tensor whose elements are not whole bytes cannot be read as bytes")
        .tensor(store.name(tensor))
        .expected("the whole tensor")
        .found(cat("elements of ", bits, " bits"));
  i64 items = 1;
  for (const SliceRange& r : ranges) items *= r.end - r.begin;
  return items * (bits / 8);
}

void SliceReader::read(i64 tensor, std::span<const SliceRange> ranges, std::span<u8> to) {
  auto copy = [&to](std::span<const u8> bytes, i64) {
    std::memcpy(to.data(), bytes.data(), bytes.size());
    to = to.subspan(bytes.size());
  };
  if (to.empty()) return;
  std::span<const i64> dims = store_.dims(tensor);
  if (is_whole(ranges, dims)) return reader_.read(tensor, copy);

  std::size_t inner = dims.size() - 1;  // the outermost dimension of a stretch
  i64 inner_items = 1;                  // of one index of it
  while (ranges[inner].begin == 0 && ranges[inner].end == dims[inner]) inner_items *= dims[inner--];
  std::vector<i64> index;  // of the counted dimensions
  for (std::size_t d = 0; d < inner; d++) index.push_back(ranges[d].begin);
  for (bool more = true; more;) {
    i64 row = 0;
    for (std::size_t d = 0; d < inner; d++) row = row * dims[d] + index[d];
    i64 begin = row * dims[inner];
    reader_.read(tensor, (begin + ranges[inner].begin) * inner_items,
                 (begin + ranges[inner].end) * inner_items, copy);
    more = advance(index, ranges);
  }
}

}  // namespace mckpt::impl
