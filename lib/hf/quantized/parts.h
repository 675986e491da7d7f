// The common part of all dialects of quantised weights: parts are found by name, and their types and shapes
// are checked against what the layout needs. Every misfit is an Error with the tensor and both sides.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/name_hash.h"
#include "core/items/dtype.h"
#include "hf/quantized/config.h"
#include "hf/quantized/scheme.h"

namespace mckpt::impl {

class Store;

inline bool is_exponent(DType t) { return t == DType::kU8 || t == DType::kF8E8M0; }

// The tensors of a store by name. The store and the config outlive it.
class PartFinder {
 public:
  using Dims = std::vector<i64>;
  static constexpr i64 kMxGroup = 32;  // codes of one scale in MXFP8 and MXFP4

  PartFinder(const Store& store, const std::optional<QuantConfig>& config);

  const Store& store() const { return store_; }
  const QuantConfig* config() const { return config_ ? &*config_ : nullptr; }
  i64 find(std::string_view name) const;            // -1: there is no such tensor
  i64 module_scale(std::string_view weight) const;  // MODULE.scale of MODULE.weight; -1: there is none
  Dims dims(i64 tensor) const;

  [[noreturn]] void misfit(i64 tensor, std::string_view what, const std::string& expected,
                           const std::string& found) const;
  void expect_dims(i64 tensor, const Dims& expected, std::string_view why) const;
  void expect_dtype(i64 tensor, std::initializer_list<DType> types) const;

  QuantizedTensor made(CodeFormat format, std::string_view name, i64 codes, i64 scales) const;
  // The layout's rows and columns count the items of a tensor of codes, which is a matrix or a stack of
  // matrices.
  void set_matrix(QuantizedTensor& q, i64 codes_per_byte) const;
  // A scale for `columns` codes of a row, as the shape of the scales must be.
  void set_groups(QuantizedTensor& q, i64 columns) const;
  void expect_grid(const QuantizedTensor& q, std::string_view why) const;

 private:
  const Store& store_;
  const std::optional<QuantConfig>& config_;
  NameMap<std::string_view, i64> numbers_;
};

// The dialects. Each looks for the parts of the tensor `codes`; nothing if it is not codes of this dialect.
// All throw kQuantMisfit and kQuantized.
//
//   fp8_weight        NAME of FP8, NAME_scale_inv or NAME_scale; MODULE.weight of FP8, MODULE.scale
//                     (DeepSeek-V4); a part of a table of FP8, and one scale of the whole table
//   fp4_weight        MODULE.weight of I8, two codes a byte, MODULE.scale (DeepSeek-V4)
//   mxfp4_blocks      NAME_blocks, NAME_scales (gpt-oss)
//   nvfp4_weight      NAME of U8, NAME_scale, NAME_scale_2 (ModelOpt)
//   packed_weight     NAME_packed, NAME_scale, and NAME_shape or NAME_global_scale (compressed-tensors)
//   int8_weight       NAME of I8, NAME_scale (compressed-tensors)
std::optional<QuantizedTensor> fp8_weight(const PartFinder& parts, i64 codes);
std::optional<QuantizedTensor> fp4_weight(const PartFinder& parts, i64 codes);
std::optional<QuantizedTensor> mxfp4_blocks(const PartFinder& parts, i64 codes);
std::optional<QuantizedTensor> nvfp4_weight(const PartFinder& parts, i64 codes);
std::optional<QuantizedTensor> packed_weight(const PartFinder& parts, i64 codes);
std::optional<QuantizedTensor> int8_weight(const PartFinder& parts, i64 codes);

// The part that both kinds of integers have. set_one_scale() sets one scale for all codes of the matrix,
// set_block() scales of a block that the config declares; false: the scales are others. The third takes zero
// points of a byte for each scale, which are q.zero_points.
bool set_one_scale(const PartFinder& parts, QuantizedTensor& q);
bool set_block(const PartFinder& parts, QuantizedTensor& q);
void set_zero_point_bytes(const PartFinder& parts, QuantizedTensor& q);

// Sets the tensor NAME_g_idx, which has the group of each column, if there is one. Throws kQuantMisfit if the
// config does not declare such groups, or not in all of its groups that the codes fit, or the scales are none
// of groups; kQuantized for codes whose groups compressed-tensors itself never reorders.
void set_group_tensor(const PartFinder& parts, QuantizedTensor& q);

// For a packed weight whose scales are exponents: whether its codes have six bits, as the shape of the scales
// says; and such a weight.
bool is_mxfp6(const PartFinder& parts, const QuantizedTensor& packed);
QuantizedTensor mxfp6_weight(const PartFinder& parts, QuantizedTensor packed);

}  // namespace mckpt::impl
