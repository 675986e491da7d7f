// One element of a tensor as a number: what its bits mean, for every data type.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "core/items/dtype.h"

namespace mckpt::impl {

// A float of up to 16 bits: sign, exponent, mantissa, from the top.
struct SmallFloat {
  enum class Special : u8 {
    kIeee,   // the largest exponent is for infinities and NaN
    kFn,     // finite but for one NaN of each sign, all ones
    kFnuz,   // finite, and the code of -0 is the only NaN
    kNone,   // finite
    kScale,  // no sign and no mantissa: powers of two, all ones is NaN (E8M0)
  };
  int exponent_bits = 0, mantissa_bits = 0, bias = 0;
  Special special = Special::kIeee;

  double value(u32 code) const;
};

// The layout of a float type of at most 16 bits, or null.
const SmallFloat* small_float(DType dtype);

// How the elements of a tensor lie in bytes and what numbers they are. A complex element is two numbers; a
// byte of float4_e2m1fn_x2 is two as well, the low half first.
struct ElementForm {
  enum class Kind : u8 { kCode, kF32, kF64, kI32, kU32, kI64, kU64 };
  Kind kind = Kind::kCode;
  int number_bits = 8;  // of one number
  int per_element = 1;  // numbers in an element as the shape counts them
};
ElementForm element_form(DType dtype);

// The number at `index` of those packed one after the other, at any address.
template <typename T>
T load(const u8* bytes, i64 index) {
  T v;
  std::memcpy(&v, bytes + index * static_cast<i64>(sizeof(T)), sizeof(T));
  return v;
}

// The value of every code of a type whose numbers have at most 16 bits. pre: kind is kCode.
std::vector<double> code_values(DType dtype);

// The number at `index` of the bytes. Integers of 64 bits may be rounded; to_text() is exact.
double number_at(DType dtype, const u8* bytes, i64 index);
// In the shortest form that leads back to the same value of the type's precision (that of float for narrower
// ones).
std::string number_text(DType dtype, const u8* bytes, i64 index);

}  // namespace mckpt::impl
