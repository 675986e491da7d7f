// The parts of a quantised tensor: which tensors of the files have its codes and scales.
//
//   "w.weight"            F8_E4M3 [300, 130]    codes     \.
//   "w.weight_scale_inv"  F32     [3, 2]        scales    /  "w.weight" [300, 130], blocks of 128 x 128
//
// How codes become values is a QuantLayout (core/quantized/layout.h).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/int.h"
#include "core/quantized/layout.h"

namespace mckpt::impl {

class Store;

// Numbers of tensors in the store; -1: the scheme has no such tensor. Two parts of the layout are not read
// yet: tensor_scale, the number in `tensor_scale`, and group_of, the numbers in `groups`.
struct QuantizedTensor {
  std::string name;       // of the tensor of values
  std::vector<i64> dims;  // of the values
  i64 codes = -1, scales = -1;
  i64 tensor_scale = -1;  // NVFP4: one float for the whole tensor
  i64 zero_points = -1;   // integers
  i64 shape = -1;         // packed integers: rows and columns
  i64 groups = -1;        // compressed-tensors: the group of each column
  QuantLayout layout{};   // of the matrices of codes, as they are stored
  bool turned = false;    // the values have the last two dimensions in the other order than the codes
};

// Rows and columns that a tensor NAME_shape of packed integers has, of type I64 or I32.
std::pair<i64, i64> packed_shape(DType type, std::span<const u8> bytes);
// Throws kQuantMisfit unless these bytes of its `shape` are the tensor's rows and columns.
void refuse_other_shape(const Store& store, const QuantizedTensor& tensor, std::span<const u8> bytes);

// The layout's group_of by the bytes of `groups`; null where all are -1, which is how compressed-tensors
// marks groups that are side by side. Throws kQuantMisfit for groups that the layout cannot have.
std::shared_ptr<const std::vector<i32>> groups_of_columns(const Store& store, const QuantizedTensor& tensor,
                                                          std::span<const u8> bytes);

// "fp8 blocks 128x128", "fp8 one scale a row", "mxfp4 groups of 32", "int4 groups of 32".
std::string scheme_text(const QuantLayout& layout);

}  // namespace mckpt::impl
