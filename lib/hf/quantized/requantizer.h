// The codes and scales of one quantised tensor, computed from values that a store has.
//
//   values  "w.weight" BF16 [300, 130]  -->  rows 128..255: scales row 1, codes of 128 rows
//
// Scales are made anew from the largest value of each block, or are those of a *pattern*: the quantised model that
// the values came from. A block keeps its scale in the pattern if codes with that scale stand for exactly its values;
// so what nobody changed gets the bytes that it had, wherever the scheme is a fixed point.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/quantized/quantize.h"
#include "hf/quantized/scheme.h"
#include "io/file/file.h"
#include "io/store/store_files.h"

namespace mckpt::impl {

class Store;

// How one tensor is quantised. A plain value; layout.tensor_scale is set.
struct Requantized {
  QuantLayout layout{};
  i64 values = -1;      // tensor of the store of values
  bool turned = false;  // the values have the last two dimensions in the other order than the codes
  // How scales are made; none: those of the pattern have to do, and values that they do not give are refused.
  std::optional<ScaleRule> rule{};
  i64 pattern_scales = -1, pattern_zero_points = -1;  // tensors of the pattern; -1: none
};

// Computes; belongs to a view and is shared by its byte sources and all threads.
class Requantizer {
 public:
  // `pattern` may be null. Both outlive it.
  Requantizer(const Store& values, const Store* pattern);
  ~Requantizer();

  // Codes or scales of the tensor as they are stored, row by row. `how` and the requantizer outlive the source. Reading
  // throws kBadScale for NaN and infinities among the values, and for values that the scales of the pattern do not give where no rule
  // makes others.
  std::shared_ptr<const ByteSource> codes(const Requantized& how);
  std::shared_ptr<const ByteSource> scales(const Requantized& how);

 private:
  class Bytes;
  struct Rows;
  std::shared_ptr<const Rows> rows_with(const Requantized& how, i64 row);
  std::shared_ptr<const Rows> compute(const Requantized& how, i64 first, i64 rows);
  std::vector<u8> values_of(const Requantized& how, i64 first, i64 rows) const;
  [[noreturn]] void refuse_non_finite(i64 tensor) const;
  void read_values(i64 tensor, i64 begin, std::span<u8> to) const;
  void keep_scales(const Requantized& how, Rows& out, std::span<const u8> values) const;
  std::vector<u8> pattern_bytes(i64 tensor, i64 begin, i64 end) const;

  const Store& values_;
  const Store* pattern_;
  StoreFiles value_files_;
  std::optional<StoreFiles> pattern_files_;
  mutable std::mutex mutex_;
  // What was computed last, by tensor and first row: codes and scales of it are read one after the other.
  std::vector<std::pair<std::pair<const Requantized*, i64>, std::shared_ptr<const Rows>>> kept_;
  std::mutex
      large_;  // held while an expert of a turned tensor is computed, which takes more memory than a thread has
};

}  // namespace mckpt::impl
