// How two sides store one tensor: whether these are two types, and the type in which both are compared.
//
//   bfloat16   float32      compared as float32, exactly
//   bfloat16   float16      compared as float32: neither has all values of the other
//   bfloat16   float8_e4m3fn   compared as bfloat16, which has all values of both
//   int32      int64           compared as int64
//   int64      float32         no type has all values of both: not compared
//   bfloat16   fp8 blocks   two types too: one side was decoded
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

enum class DType : u8;
class Store;

// Whether type `to` has every value of type `from`.
bool holds_values_of(DType to, DType from);
// The narrowest type that has all values of both; nothing if no type has.
std::optional<DType> common_type(DType a, DType b);
// Appends the items in a type that has all their values. pre: holds_values_of(to, from)
void append_widened(DType from, DType to, std::span<const u8> items, std::vector<u8>& out);
// How the files have the tensor: "bfloat16", or of values that are decoded when they are read "fp8 blocks
// 128x128".
std::string stored_form(const Store& store, i64 tensor);

}  // namespace mckpt::impl
