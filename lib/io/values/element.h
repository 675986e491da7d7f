// One element of a tensor as a number: what its bits mean, for every data type. Statistics, checks for NaN,
// and the values that `cat` shows use it.
//
//   type               bits        number_bits  per_element  value
//   bfloat16           0x3fc0      16           1            1.5
//   float8_e4m3fn      0x7f        8            1            NaN
//   complex64          two floats  32           2            real, imaginary
//   float4_e2m1fn_x2   0x21        4            2            0.5, 1 (the low half first)
//
// Types of at most 16 bits have so few codes that a table of all values is practical (code_values).
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "core/items/dtype.h"

namespace mckpt::impl {

// A float of up to 16 bits: sign, exponent, mantissa, from the top.
struct SmallFloat {
  // The meaning of the codes that are not ordinary numbers.
  enum class Special : u8 {
    kIeee,   // the largest exponent is for infinities and NaN
    kFn,     // finite but for one NaN of each sign, all ones
    kFnuz,   // finite, and the code of -0 is the only NaN
    kNone,   // finite
    kScale,  // no sign and no mantissa: powers of two, all ones is NaN (E8M0)
  };
  int exponent_bits = 0, mantissa_bits = 0, bias = 0;
  Special special = Special::kIeee;

  double value(u32 code) const;  // pre: the code has no more bits than the type
};

// The layout of a float type of at most 16 bits, or null.
const SmallFloat* small_float(DType dtype);

// How the elements of a type are stored and what numbers they are. kCode: numbers of at most 16 bits, whose
// values code_values() has. A complex element is two numbers, and so is a byte of float4_e2m1fn_x2.
struct ElementForm {
  enum class Kind : u8 { kCode, kF32, kF64, kI32, kU32, kI64, kU64 };
  Kind kind = Kind::kCode;
  int number_bits = 8;  // of one number
  int per_element = 1;  // numbers in an element as the shape counts them
};
ElementForm element_form(DType dtype);

// The value at `index` in an array of T at any address, in this machine's byte order.
template <typename T>
T load(const u8* bytes, i64 index) {
  T v;
  std::memcpy(&v, bytes + index * static_cast<i64>(sizeof(T)), sizeof(T));
  return v;
}

// The value of every code of a type, by code: up to 65,536 values. pre: the kind of the type is kCode.
std::vector<double> code_values(DType dtype);

// The number at `index`, counted in numbers of number_bits from the first byte. Integers of 64 bits may be
// rounded; number_text() is exact.
double number_at(DType dtype, const u8* bytes, i64 index);
// The number as text: the shortest that reads back as the same value in the type's precision (for types
// narrower than float: in float's precision); "NaN", "Infinity", "-Infinity", "true", "false".
std::string number_text(DType dtype, const u8* bytes, i64 index);
// The element at `index` as text: "1.5", or "(0.5, -1)" of an element that is two numbers.
std::string element_text(DType dtype, const u8* bytes, i64 index);

}  // namespace mckpt::impl
