// The codes and scales of rows of values in memory, and the values as a store has them.
//
//   rows 128..255 of "w.weight" BF16 [300, 130]   -->   scales: row 1 of [3, 2]   codes of 128 rows
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/quantized/quantize.h"
#include "hf/quantized/scheme.h"
#include "io/store/store_files.h"

namespace mckpt::impl {

class Store;

// How one tensor is quantised. A plain value; layout.tensor_scale is set.
struct Requantized {
  QuantLayout layout{};
  i64 values = -1;      // tensor of the store of values
  bool turned = false;  // the values have the last two dimensions in the other order than the codes
  // How scales are made; none: the scales of the pattern have to do, and values that they do not give are
  // refused.
  std::optional<ScaleRule> rule{};
  i64 pattern_codes = -1, pattern_scales = -1, pattern_zero_points = -1;  // tensors of the pattern; -1: none
};

// Thread-safe.
class RowCoder {
 public:
  // `pattern` may be null. Both outlive it.
  RowCoder(const Store& values, const Store* pattern);

  DType type(const Requantized& how) const;  // of the values
  // Bytes of a tensor's row-major form from `begin` on.
  void read_values(i64 tensor, i64 begin, std::span<u8> to) const;

  // Codes and scales of rows [first, first + rows) of `how`, counted through all matrices, of values in the
  // order of the codes; no codes if that span is empty. pre: whole rows of blocks, unless there is no rule;
  // codes are wanted where the pattern has scales. Throws kBadScale for NaN and infinities among the values,
  // and for values that the scales of the pattern do not give where no rule makes others.
  void code(const Requantized& how, i64 first, i64 rows, std::span<const u8> values, std::span<u8> codes,
            std::span<u8> scales) const;

 private:
  struct Rows;  // in work
  void code_like(const Rows& rows) const;
  void write_codes(const Rows& rows) const;
  std::vector<bool> keep_scales(const Rows& rows) const;
  [[noreturn]] void refuse_non_finite(i64 tensor) const;
  std::vector<u8> pattern_bytes(i64 tensor, i64 begin, i64 end) const;

  const Store& values_;
  const Store* pattern_;
  StoreFiles value_files_;
  std::optional<StoreFiles> pattern_files_;
};

}  // namespace mckpt::impl
