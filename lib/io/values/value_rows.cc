// Chooses which indexes are shown, and reads the bytes of one row at a time. A tensor with elements smaller
// than a byte is read whole for each row: such an element need not begin with a byte.
#include "io/values/value_rows.h"

namespace mckpt::impl {
namespace {

constexpr i64 kEdge = 3;  // values at either end of a dimension whose middle is left out

// The indexes of a range; with `edges`, a range of more than 7 is cut to 3 at either end with -1 between
// them.
std::vector<i64> shown_indexes(const SliceRange& range, bool edges) {
  std::vector<i64> indexes;
  bool some = edges && range.end - range.begin > 2 * kEdge + 1;
  for (i64 i = range.begin; i < range.end; i++) {
    if (some && i == range.begin + kEdge) {
      indexes.push_back(-1);
      i = range.end - kEdge;
    }
    indexes.push_back(i);
  }
  return indexes;
}

}  // namespace

ValueRows::ValueRows(const Store& store, i64 tensor, std::vector<SliceRange> ranges, bool edges)
    : store_(store),
      files_(store),
      reader_(store, files_),
      tensor_(tensor),
      ranges_(std::move(ranges)),
      form_(element_form(store.dtype(tensor))) {
  for (const SliceRange& r : ranges_) indexes_.push_back(shown_indexes(r, edges));
}

void ValueRows::load(const std::vector<i64>& prefix) {
  std::span<const i64> dims = store_.dims(tensor_);
  i64 begin = 0;
  for (std::size_t d = 0; d < dims.size(); d++) begin = begin * dims[d] + (d < prefix.size() ? prefix[d] : 0);
  SliceRange last = ranges_.empty() ? SliceRange{0, 1, true} : ranges_.back();
  auto take = [&](std::span<const u8> bytes, i64) { row_.insert(row_.end(), bytes.begin(), bytes.end()); };
  row_.clear();
  if (dtype_info(store_.dtype(tensor_)).bits % 8 != 0) {  // such elements can only be read from the first on
    reader_.read(tensor_, take);
    row_begin_ = -begin;
    loaded_(std::ssize(row_));
    return;
  }
  row_begin_ = last.begin;
  reader_.read(tensor_, begin + last.begin, begin + last.end, take);
  loaded_(std::ssize(row_));
}

i64 ValueRows::bytes() const {
  SliceRange last = ranges_.empty() ? SliceRange{0, 1, true} : ranges_.back();
  i64 rows = 1;
  for (std::size_t d = 0; d + 1 < indexes_.size(); d++) rows *= std::ssize(indexes_[d]);
  const DType dtype = store_.dtype(tensor_);
  // load() reads the whole tensor for each row.
  if (dtype_info(dtype).bits % 8 != 0) return rows * TensorReader::tensor_bytes(store_, tensor_);
  return rows * dtype_bytes(dtype, last.end - last.begin);
}

}  // namespace mckpt::impl
