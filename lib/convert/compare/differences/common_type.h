// How two sides store one tensor: whether these are two types, and the type in which both are compared.
//
//   bfloat16   float32      compared as float32, exactly
//   bfloat16   float16      compared as float32: neither has all values of the other
//   bfloat16   fp8 blocks   two types too: one side was decoded
#pragma once

#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

enum class DType : u8;
class Store;

// Whether type `to` has every value of type `from`. pre: they are equal, or both are castable.
bool holds_values_of(DType to, DType from);
// The narrowest type that has all values of both. Of two types that cannot be cast, the first.
DType common_type(DType a, DType b);
// How the files have the tensor: "bfloat16", or of values that are decoded when they are read "fp8 blocks 128x128".
std::string stored_form(const Store& store, i64 tensor);

}  // namespace mckpt::impl
