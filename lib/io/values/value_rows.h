// ValueRows: some values of one tensor, read row by row and shown as text, as `cat` prints them. A slice
// chooses them; of a large tensor only the edges are taken:
//
//   indexes of a dimension of 1,000     0 1 2 -1 997 998 999        -1: values that are left out
//
//   ValueRows rows(store, tensor, ranges, true);
//   rows.load({4}), rows.text(7, 0);                row 4, column 7 of a matrix
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/choice/slice.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/values/element.h"
#include "io/values/tensor_reader.h"

namespace mckpt::impl {

// Belongs to one thread; holds one row in memory.
class ValueRows {
 public:
  // `ranges`: one for each dimension. `edges`: leave out the middle of long dimensions. The store outlives
  // this.
  ValueRows(const Store& store, i64 tensor, std::vector<SliceRange> ranges, bool edges);

  // By dimension: the indexes that are shown, and whether the slice chose a single index, which drops the
  // dimension.
  std::size_t rank() const { return ranges_.size(); }
  const std::vector<i64>& indexes(std::size_t d) const { return indexes_[d]; }
  bool single(std::size_t d) const { return ranges_[d].single; }

  // Reads the row of the last dimension whose other indexes are `prefix`. Throws what TensorReader throws.
  void load(const std::vector<i64>& prefix);
  // The bytes of all rows that are shown; load() calls `loaded` with the bytes of its row.
  i64 bytes() const;
  void watch(std::function<void(i64 bytes)> loaded) { loaded_ = std::move(loaded); }

  // The element at an index of the last dimension, in parts: a complex number has two. pre: load() was
  // called.
  int parts() const { return form_.per_element; }
  std::string text(i64 index, int part) const {
    return number_text(store_.dtype(tensor_), row_.data(), (index - row_begin_) * parts() + part);
  }

 private:
  const Store& store_;
  StoreFiles files_;
  TensorReader reader_;
  i64 tensor_;
  std::vector<SliceRange> ranges_;
  std::vector<std::vector<i64>> indexes_;
  ElementForm form_;
  std::vector<u8> row_;
  i64 row_begin_ = 0;
  std::function<void(i64 bytes)> loaded_ = [](i64) {};
};

}  // namespace mckpt::impl
