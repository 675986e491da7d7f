// Converts the bits of one element to a number or to text. Floats of at most 16 bits are described by a row
// of a table (bits of exponent and mantissa, bias, what the largest codes mean) and computed by one function:
//
//   value = (-1)^sign * 1.mantissa * 2^(exponent - bias)        exponent > 0
//           (-1)^sign * 0.mantissa * 2^(1 - bias)               exponent = 0
//           2^(code - bias)                                     float8_e8m0fnu, which is only an exponent
#include "io/values/element.h"
#include "core/base/text.h"

#include <cmath>
#include <limits>

namespace mckpt::impl {
namespace {

using Special = SmallFloat::Special;
using Kind = ElementForm::Kind;

// Bits of exponent and of mantissa, bias of the exponent, and what the largest codes mean.
struct FloatRow {
  DType dtype;
  SmallFloat form;
};

constexpr FloatRow kFloats[] = {
    {DType::kF16, {5, 10, 15, Special::kIeee}},      {DType::kBF16, {8, 7, 127, Special::kIeee}},
    {DType::kF8E4M3, {4, 3, 7, Special::kFn}},       {DType::kF8E5M2, {5, 2, 15, Special::kIeee}},
    {DType::kF8E4M3FNUZ, {4, 3, 8, Special::kFnuz}}, {DType::kF8E5M2FNUZ, {5, 2, 16, Special::kFnuz}},
    {DType::kF8E8M0, {8, 0, 127, Special::kScale}},  {DType::kF4, {2, 1, 1, Special::kNone}},
    {DType::kF4x2, {2, 1, 1, Special::kNone}},       {DType::kF6E2M3, {2, 3, 1, Special::kNone}},
    {DType::kF6E3M2, {3, 2, 3, Special::kNone}},     {DType::kC32, {5, 10, 15, Special::kIeee}},
};

// The code at `index` where codes are packed from the lowest bit up.
u32 code_at(const u8* bytes, i64 index, int bits) {
  if (bits == 8) return bytes[index];
  if (bits == 16) return load<u16>(bytes, index);
  i64 bit = index * bits;
  u32 window = bytes[bit / 8];
  if (bit % 8 + bits > 8) window |= static_cast<u32>(bytes[bit / 8 + 1]) << 8;
  return window >> (bit % 8) & ((1u << bits) - 1);
}

double code_value(DType dtype, u32 code) {
  if (const SmallFloat* f = small_float(dtype)) return f->value(code);
  const DTypeInfo& info = dtype_info(dtype);
  bool is_signed = info.kind == DTypeKind::kSigned || dtype == DType::kQI8;
  if (info.kind == DTypeKind::kBool) return code != 0;
  if (!is_signed) return code;
  return info.bits == 8 ? static_cast<std::int8_t>(code) : static_cast<std::int16_t>(code);
}

}  // namespace

double SmallFloat::value(u32 code) const {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  if (special == Special::kScale) return code == 0xff ? kNaN : std::ldexp(1.0, static_cast<int>(code) - bias);
  u32 mantissa = code & ((1u << mantissa_bits) - 1),
      exponent = code >> mantissa_bits & ((1u << exponent_bits) - 1);
  bool negative = code >> (mantissa_bits + exponent_bits) & 1;
  bool top = exponent == (1u << exponent_bits) - 1;
  if (special == Special::kFnuz && negative && exponent == 0 && mantissa == 0) return kNaN;
  if (special == Special::kFn && top && mantissa == (1u << mantissa_bits) - 1) return kNaN;
  if (special == Special::kIeee && top) {
    if (mantissa != 0) return kNaN;
    return negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  }
  u32 significand = exponent == 0 ? mantissa : mantissa | 1u << mantissa_bits;
  double v = std::ldexp(significand, static_cast<int>(exponent == 0 ? 1 : exponent) - bias - mantissa_bits);
  return negative ? -v : v;
}

const SmallFloat* small_float(DType dtype) {
  for (const FloatRow& row : kFloats)
    if (row.dtype == dtype) return &row.form;
  return nullptr;
}

ElementForm element_form(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return {Kind::kF32, 32, 1};
    case DType::kC64:
      return {Kind::kF32, 32, 2};
    case DType::kF64:
      return {Kind::kF64, 64, 1};
    case DType::kC128:
      return {Kind::kF64, 64, 2};
    case DType::kI32:
    case DType::kQI32:
      return {Kind::kI32, 32, 1};
    case DType::kU32:
      return {Kind::kU32, 32, 1};
    case DType::kI64:
      return {Kind::kI64, 64, 1};
    case DType::kU64:
      return {Kind::kU64, 64, 1};
    case DType::kC32:
      return {Kind::kCode, 16, 2};
    case DType::kF4x2:
      return {Kind::kCode, 4, 2};
    default:
      return {Kind::kCode, dtype_info(dtype).bits, 1};
  }
}

std::vector<double> code_values(DType dtype) {
  std::vector<double> values(std::size_t{1} << element_form(dtype).number_bits);
  for (u32 code = 0; code < values.size(); code++) values[code] = code_value(dtype, code);
  return values;
}

double number_at(DType dtype, const u8* bytes, i64 index) {
  ElementForm form = element_form(dtype);
  switch (form.kind) {
    case Kind::kF32:
      return load<float>(bytes, index);
    case Kind::kF64:
      return load<double>(bytes, index);
    case Kind::kI32:
      return load<i32>(bytes, index);
    case Kind::kU32:
      return load<u32>(bytes, index);
    case Kind::kI64:
      return static_cast<double>(load<i64>(bytes, index));
    case Kind::kU64:
      return static_cast<double>(load<u64>(bytes, index));
    case Kind::kCode:
      break;
  }
  return code_value(dtype, code_at(bytes, index, form.number_bits));
}

std::string number_text(DType dtype, const u8* bytes, i64 index) {
  ElementForm form = element_form(dtype);
  if (form.kind == Kind::kI64) return cat(load<i64>(bytes, index));
  if (form.kind == Kind::kU64) return cat(load<u64>(bytes, index));
  double v = number_at(dtype, bytes, index);
  if (dtype == DType::kBool) return v != 0 ? "true" : "false";
  if (std::isnan(v)) return "NaN";
  if (std::isinf(v)) return v > 0 ? "Infinity" : "-Infinity";
  return form.kind == Kind::kF64 || form.kind == Kind::kI32 || form.kind == Kind::kU32
             ? cat(v)
             : cat(static_cast<float>(v));
}

std::string element_text(DType dtype, const u8* bytes, i64 index) {
  i64 n = element_form(dtype).per_element;
  std::string out;
  for (i64 i = 0; i < n; i++) out += cat(i ? ", " : "", number_text(dtype, bytes, index * n + i));
  return n == 1 ? out : cat("(", out, ")");
}

}  // namespace mckpt::impl
