// The table of data types and its look-up by each of their names. The table is indexed by the enumerator,
// which the compiler checks; look-ups by name walk the table, since a file has few types.
//
//   dtype_from_name("torch.half")   aliases and the prefix are accepted       ->  kF16
//   dtype_from_safetensors("F16")   names are exact                           ->  kF16
#include "core/items/dtype.h"
#include "core/base/error.h"

#include <array>
#include <string>
#include <vector>

namespace mckpt::impl {
namespace {

using enum DTypeKind;

constexpr DTypeInfo kDTypes[] = {
    {DType::kBool, "bool", "BOOL", "Bool", 8, kBool, true},
    {DType::kU8, "uint8", "U8", "Byte", 8, kUnsigned, true},
    {DType::kI8, "int8", "I8", "Char", 8, kSigned, true},
    {DType::kU16, "uint16", "U16", "", 16, kUnsigned, true},
    {DType::kI16, "int16", "I16", "Short", 16, kSigned, true},
    {DType::kU32, "uint32", "U32", "", 32, kUnsigned, true},
    {DType::kI32, "int32", "I32", "Int", 32, kSigned, true},
    {DType::kU64, "uint64", "U64", "", 64, kUnsigned, true},
    {DType::kI64, "int64", "I64", "Long", 64, kSigned, true},
    {DType::kF16, "float16", "F16", "Half", 16, kFloat, true},
    {DType::kBF16, "bfloat16", "BF16", "BFloat16", 16, kFloat, true},
    {DType::kF32, "float32", "F32", "Float", 32, kFloat, true},
    {DType::kF64, "float64", "F64", "Double", 64, kFloat, true},
    {DType::kC32, "complex32", "", "ComplexHalf", 32, kComplex, true},
    {DType::kC64, "complex64", "C64", "ComplexFloat", 64, kComplex, true},
    {DType::kC128, "complex128", "", "ComplexDouble", 128, kComplex, true},
    {DType::kF8E4M3, "float8_e4m3fn", "F8_E4M3", "", 8, kFloat, true},
    {DType::kF8E5M2, "float8_e5m2", "F8_E5M2", "", 8, kFloat, true},
    {DType::kF8E4M3FNUZ, "float8_e4m3fnuz", "F8_E4M3FNUZ", "", 8, kFloat, true},
    {DType::kF8E5M2FNUZ, "float8_e5m2fnuz", "F8_E5M2FNUZ", "", 8, kFloat, true},
    {DType::kF8E8M0, "float8_e8m0fnu", "F8_E8M0", "", 8, kFloat, true},
    // Torch counts pairs of 4-bit floats, safetensors counts single ones: two types with different shapes.
    {DType::kF4x2, "float4_e2m1fn_x2", "", "", 8, kFloat, true},
    {DType::kF4, "float4_e2m1fn", "F4", "", 4, kFloat, false},
    {DType::kF6E2M3, "float6_e2m3fn", "F6_E2M3", "", 6, kFloat, false},
    {DType::kF6E3M2, "float6_e3m2fn", "F6_E3M2", "", 6, kFloat, false},
    // Torch stores each of its sub-byte integers in a byte of its own.
    {DType::kU1, "uint1", "", "", 8, kUnsigned, true},
    {DType::kU2, "uint2", "", "", 8, kUnsigned, true},
    {DType::kU3, "uint3", "", "", 8, kUnsigned, true},
    {DType::kU4, "uint4", "", "", 8, kUnsigned, true},
    {DType::kU5, "uint5", "", "", 8, kUnsigned, true},
    {DType::kU6, "uint6", "", "", 8, kUnsigned, true},
    {DType::kU7, "uint7", "", "", 8, kUnsigned, true},
    {DType::kI1, "int1", "", "", 8, kSigned, true},
    {DType::kI2, "int2", "", "", 8, kSigned, true},
    {DType::kI3, "int3", "", "", 8, kSigned, true},
    {DType::kI4, "int4", "", "", 8, kSigned, true},
    {DType::kI5, "int5", "", "", 8, kSigned, true},
    {DType::kI6, "int6", "", "", 8, kSigned, true},
    {DType::kI7, "int7", "", "", 8, kSigned, true},
    {DType::kQI8, "qint8", "", "QInt8", 8, kQuantized, true},
    {DType::kQU8, "quint8", "", "QUInt8", 8, kQuantized, true},
    {DType::kQI32, "qint32", "", "QInt32", 32, kQuantized, true},
    {DType::kQU4x2, "quint4x2", "", "QUInt4x2", 8, kQuantized, true},
    {DType::kQU2x4, "quint2x4", "", "QUInt2x4", 8, kQuantized, true},
    {DType::kBits8, "bits8", "", "", 8, kBits, true},
    {DType::kBits16, "bits16", "", "", 16, kBits, true},
    {DType::kBits1x8, "bits1x8", "", "", 8, kBits, true},
    {DType::kBits2x4, "bits2x4", "", "", 8, kBits, true},
    {DType::kBits4x2, "bits4x2", "", "", 8, kBits, true},
};

// True if row i of the table belongs to enumerator i, and no row is missing.
constexpr bool in_enum_order() {
  for (std::size_t i = 0; i < std::size(kDTypes); i++)
    if (kDTypes[i].dtype != static_cast<DType>(i)) return false;
  return std::size(kDTypes) == static_cast<std::size_t>(DType::kCount);
}
static_assert(in_enum_order(), "dtype_info indexes the table by the enum");

// Another name of a type: torch's own aliases, and the short forms that people type.
struct Alias {
  std::string_view alias;
  DType dtype;
};
constexpr Alias kAliases[] = {
    {"half", DType::kF16},     {"float", DType::kF32}, {"double", DType::kF64}, {"short", DType::kI16},
    {"int", DType::kI32},      {"long", DType::kI64},  {"chalf", DType::kC32},  {"cfloat", DType::kC64},
    {"cdouble", DType::kC128}, {"bit", DType::kU1},    {"bf16", DType::kBF16},  {"fp16", DType::kF16},
    {"f16", DType::kF16},      {"fp32", DType::kF32},  {"f32", DType::kF32},    {"fp64", DType::kF64},
    {"f64", DType::kF64},
};

// Suggests the nearest name.
[[noreturn]] void throw_unknown(std::string_view name, const std::vector<std::string_view>& known) {
  Error e(Code::kUnknownDType, cat("unknown data type '", escaped(name), "'"));
  std::string_view near = nearest(name, known);
  throw e.help(near.empty() ? "mckpt formats lists them" : cat("did you mean ", near, "?"));
}

}  // namespace

std::span<const DTypeInfo> all_dtypes() { return kDTypes; }

// The table is in the order of the enum (asserted above).
const DTypeInfo& dtype_info(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }

DType dtype_from_name(std::string_view name) {
  std::string_view bare = name.starts_with("torch.") ? name.substr(6) : name;
  for (const DTypeInfo& row : kDTypes)
    if (row.name == bare) return row.dtype;
  for (const Alias& row : kAliases)
    if (row.alias == bare) return row.dtype;
  std::vector<std::string_view> known;
  for (const DTypeInfo& row : kDTypes) known.push_back(row.name);
  throw_unknown(bare, known);
}

DType dtype_from_safetensors(std::string_view name) {
  for (const DTypeInfo& row : kDTypes)
    if (!row.safetensors.empty() && row.safetensors == name) return row.dtype;
  std::vector<std::string_view> known;
  for (const DTypeInfo& row : kDTypes)
    if (!row.safetensors.empty()) known.push_back(row.safetensors);
  throw_unknown(name, known);
}

// Types of whole bytes are multiplied as bytes, so that the number of bits need not fit 63 bits.
i64 dtype_bytes(DType dtype, i64 items) {
  i64 bits = dtype_info(dtype).bits;
  if (bits % 8 == 0) return checked_mul(items, bits / 8, "the size of a tensor in bytes");
  bits = checked_mul(items, bits, "the size of a tensor in bits");
  if (bits % 8 != 0)
    throw Error(Code::kBadShape, cat(items, " elements of ", dtype_name(dtype), " do not fill whole bytes"))
        .expected("a multiple of 8 bits")
        .found(cat(bits, " bits"));
  return bits / 8;
}

}  // namespace mckpt::impl
