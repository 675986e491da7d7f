// Sources of bytes that compute: the values of a quantised tensor, as if they were in a file. A read of values
// [a, b) reads the codes and scales of these values, at most once each, and decodes them.
//
//   read items 1000..1999 of [300, 130]   rows 7 to 15: codes 910..2079 in one read, rows 0 of the scales
//
// A tensor whose last two dimensions are exchanged (MXFP4 of gpt-oss) has every column of its codes in a row of
// values. There a band of columns of one matrix is read and kept, because the next reads want it too:
//
//   codes [2I, H/32 x 16 B]      values [H, 2I]
//   | band | band |              rows of values 0..k come from the first band
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "core/items/dtype.h"
#include "core/quantized/checks.h"
#include "hf/quantized/scheme.h"
#include "io/file/file.h"
#include "io/store/store_files.h"

namespace mckpt::impl {

class Store;
class ValueFaults;

// Memory that all sources of one view share: buffers that are used again, and bands of turned tensors. Thread-safe.
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
    Buffer bytes, scales;
    ScaleRange range{};  // of the scales
  };
  std::shared_ptr<const Band> find(i64 codes, i64 matrix, i64 group);
  void keep(std::shared_ptr<const Band> band);
  // The most bytes of one band.
  i64 band_bytes() const { return band_bytes_; }

  const StoreBytes& files() const { return files_; }

 private:
  StoreBytes files_;
  i64 band_bytes_;
  std::size_t most_bands_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Buffer>> idle_;
  std::vector<std::shared_ptr<const Band>> bands_;  // the one used last is the last
};

// The values of a tensor of `store` as row-major items of `dtype`. All arguments outlive it. Throws kQuantMisfit if
// packed codes have another shape than `weight_shape` says; it and reading throw what `faults` throws.
std::shared_ptr<const ByteSource> value_bytes(const Store& store, const QuantizedTensor& tensor, DType dtype,
                                              ValueMemory& memory, ValueFaults& faults);

// The layout with the scale of the whole tensor, which is read. Throws what reading throws.
QuantLayout stored_layout(const Store& store, const QuantizedTensor& tensor);
// A small tensor, read into memory.
std::shared_ptr<const ByteSource> bytes_in_memory(const Store& store, i64 tensor);

}  // namespace mckpt::impl
