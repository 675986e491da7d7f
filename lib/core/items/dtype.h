// Data types: one row for each element type of torch and of safetensors.
//
//   DType    name        safetensors   torch_storage   bits
//   kBF16    bfloat16    BF16          BFloat16        16
//   kF4      float4_...  F4                            4       sub-byte: only whole bytes of items can be sized
//
// mckpt copies items of every type; it computes with the 16-, 32- and 64-bit floats only (item_cast.h).
#pragma once

#include <span>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

// The order is the order of the table in dtype.cc. kCount is the number of types, not a type.
enum class DType : u8 {
  kBool,
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kU64,
  kI64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kC32,
  kC64,
  kC128,
  kF8E4M3,
  kF8E5M2,
  kF8E4M3FNUZ,
  kF8E5M2FNUZ,
  kF8E8M0,
  kF4x2,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kU1,
  kU2,
  kU3,
  kU4,
  kU5,
  kU6,
  kU7,
  kI1,
  kI2,
  kI3,
  kI4,
  kI5,
  kI6,
  kI7,
  kQI8,
  kQU8,
  kQI32,
  kQU4x2,
  kQU2x4,
  kBits8,
  kBits16,
  kBits1x8,
  kBits2x4,
  kBits4x2,
  kCount
};

enum class DTypeKind : u8 { kBool, kUnsigned, kSigned, kFloat, kComplex, kQuantized, kBits };

// A row of the table; it lives as long as the program.
struct DTypeInfo {
  DType dtype;
  std::string_view name;           // what mckpt prints: torch's spelling without "torch."
  std::string_view safetensors;    // "" if safetensors does not have the type
  std::string_view torch_storage;  // torch's typed storage class less "Storage"; "" where there is none
  int bits;                        // of one element as the shape counts it
  DTypeKind kind;
  bool in_torch;  // false: only safetensors has it
};

std::span<const DTypeInfo> all_dtypes();
// pre: not kCount.
const DTypeInfo& dtype_info(DType dtype);
inline std::string_view dtype_name(DType dtype) { return dtype_info(dtype).name; }

// Each throws kUnknownDType, naming the nearest known one. dtype_from_name takes torch's names (with or
// without "torch."), its aliases ("half", "long") and the short forms bf16, fp16, fp32, fp64.
DType dtype_from_name(std::string_view name);
DType dtype_from_safetensors(std::string_view name);

// Bytes of `items` elements. Throws kSizeOverflow, and kBadShape when sub-byte elements do not fill whole
// bytes.
i64 dtype_bytes(DType dtype, i64 items);

}  // namespace mckpt::impl
