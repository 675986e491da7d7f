// Sources of bytes that compute: the values of a quantised tensor, as if they were in a file. A read of
// values [a, b) reads the codes and scales of these values, at most once each, and decodes them.
//
//   read items 1000..1999 of [300, 130]   rows 7 to 15: codes 910..2079 in one read, rows 0 of the scales
//
// A tensor whose last two dimensions are exchanged (MXFP4 of gpt-oss) has every column of its codes in a row
// of values. There a band of columns of one matrix is read and kept, because the next reads want it too:
//
//   codes [2I, H/32 x 16 B]      values [H, 2I]
//   | band | band |              rows of values 0..k come from the first band
//
// In memory a band is panels of 128 columns, one behind the other, so that a row of a panel is a line of the
// cache and its next row the next line:
//
//   row 0   p0 p1 p2             p0 of all rows, p1 of all rows, p2 of all rows
//
// 16 rows are decoded together, because a byte of the codes has values of two rows and a vector has values of
// 16. If a read begins or ends between them, these rows are kept, too: the next read wants the rest.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/items/dtype.h"
#include "core/quantized/checks.h"
#include "hf/quantized/scheme.h"
#include "io/file/file.h"
#include "io/store/store_files.h"

namespace mckpt::impl {

class Store;
class ValueFaults;

// The few values that were used last. Thread-safe.
template <typename T>
class UsedLast {
 public:
  template <typename Wanted>
  std::shared_ptr<const T> find(Wanted&& wanted) {
    std::lock_guard lock(mutex_);
    auto at = std::ranges::find_if(kept_, [&](const auto& one) { return wanted(*one); });
    if (at == kept_.end()) return nullptr;
    std::rotate(at, at + 1, kept_.end());
    return kept_.back();
  }
  // Forgets the one used longest ago, where there are `most`.
  void keep(std::shared_ptr<const T> one, std::size_t most) {
    std::lock_guard lock(mutex_);
    if (kept_.size() >= most) kept_.erase(kept_.begin());
    kept_.push_back(std::move(one));
  }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<const T>> kept_;  // the one used last is the last
};

// Memory that all sources of one view share: buffers that are used again, and bands of turned tensors.
// Thread-safe.
class ValueMemory {
 public:
  // The store outlives it.
  explicit ValueMemory(const Store& store);

  using Buffer = std::vector<u8>;
  // A buffer from the pool, and back.
  std::unique_ptr<Buffer> take();
  void give(std::unique_ptr<Buffer> buffer);

  // A band of codes and scales of a turned tensor.
  struct Band {
    i64 codes = -1, matrix = 0, first = 0;  // which tensor, which matrix, first group of columns
    i64 groups = 0;
    Buffer bytes, scales;  // panel by panel
    ScaleRange range{};    // of the scales
  };
  std::shared_ptr<const Band> find(i64 codes, i64 matrix, i64 group);
  void keep(std::shared_ptr<const Band> band) { bands_.keep(std::move(band), most_bands_); }

  // Values of some rows of a turned tensor, from row `first` of a matrix on.
  struct Rows {
    i64 codes = -1, matrix = 0, first = 0;
    DType dtype{};
    Buffer bytes;
  };
  std::shared_ptr<const Rows> find_rows(i64 codes, i64 matrix, i64 first, DType dtype);
  void keep(std::shared_ptr<const Rows> rows) { rows_.keep(std::move(rows), most_rows_); }
  // The most bytes of one band.
  i64 band_bytes() const { return band_bytes_; }

  const StoreBytes& files() const { return files_; }

 private:
  StoreBytes files_;
  i64 band_bytes_;
  std::size_t most_bands_, most_rows_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Buffer>> idle_;
  UsedLast<Band> bands_;
  UsedLast<Rows> rows_;
};

// The values of a tensor of `store` as row-major items of `dtype`. All arguments outlive it. Throws
// kQuantMisfit if packed codes have another shape than `weight_shape` says; it and reading throw what
// `faults` throws.
std::shared_ptr<const ByteSource> value_bytes(const Store& store, const QuantizedTensor& tensor, DType dtype,
                                              ValueMemory& memory, ValueFaults& faults);

// The layout with the scale of the whole tensor, which is read. Throws what reading throws.
QuantLayout stored_layout(const Store& store, const QuantizedTensor& tensor);
// A small tensor, read into memory.
std::shared_ptr<const ByteSource> bytes_in_memory(const Store& store, i64 tensor);

}  // namespace mckpt::impl
