// Reads an HDF5 data type as a number type, or as text that says what it is. Numbers are described by their
// bits, because HDF5 has no fixed list of types:
//
//   IEEE float, 16 bits     kFloat, 2 bytes, sign at 15, exponent 5 bits at 10, mantissa 10 bits at 0, bias 15
//   bfloat16                the same with exponent 8 bits at 7, mantissa 7 bits at 0, bias 127
//   {r, i} of two floats    kComplex, as h5py writes it
//   enum {FALSE, TRUE}      kBool
//
// mckpt decides which of its types has these bits.
#include "hdf5/type.h"

#include <string_view>

namespace mckpt::impl {
namespace {

using hdf5_wire::Order;
using hdf5_wire::TypeClass;

std::string member_name(hid_t type, unsigned index) {
  char* name = H5Tget_member_name(type, index);
  std::string out = name ? name : "";
  H5free_memory(name);
  return out;
}

ElementType other(std::string what, bool text = false) {
  ElementType t;
  t.other = std::move(what);
  t.text = text;
  return t;
}

// Integers and floats: everything that the library knows of the bits. Types that no tensor has become words.
ElementType number(hid_t type, TypeClass kind) {
  ElementType t;
  H5T_order_t order = H5Tget_order(type);
  if (order != H5T_ORDER_LE && order != H5T_ORDER_BE) return other("numbers of another byte order");
  t.kind = kind;
  t.bytes = H5Tget_size(type);
  t.order = order == H5T_ORDER_BE ? Order::kBig : Order::kLittle;
  t.numbers[0] = H5Tget_precision(type);
  t.numbers[1] = static_cast<std::size_t>(H5Tget_offset(type));
  if (kind == TypeClass::kInteger || kind == TypeClass::kBool) {
    t.numbers[2] = H5Tget_sign(type) == H5T_SGN_2;
  } else {
    if (H5Tget_norm(type) != H5T_NORM_IMPLIED) return other("floats that are not normalized");
    std::size_t* n = t.numbers.data();
    if (H5Tget_fields(type, n + 3, n + 4, n + 5, n + 6, n + 7) < 0) return other("floats without fields");
    n[8] = H5Tget_ebias(type);
  }
  t.numeric = true;
  return t;
}

// As h5py writes complex numbers: {r, i} of one float type.
ElementType compound(hid_t type) {
  int members = H5Tget_nmembers(type);
  if (members == 2 && member_name(type, 0) == "r" && member_name(type, 1) == "i") {
    TypeHandle real(H5Tget_member_type(type, 0)), imaginary(H5Tget_member_type(type, 1));
    std::size_t part = H5Tget_size(real);
    if (H5Tget_class(real) == H5T_FLOAT && H5Tequal(real, imaginary) > 0 && H5Tget_size(type) == 2 * part &&
        H5Tget_member_offset(type, 0) == 0 && H5Tget_member_offset(type, 1) == part) {
      ElementType t = number(real, TypeClass::kComplex);
      t.bytes = 2 * part;
      return t;
    }
  }
  return other("compound values of " + std::to_string(members) + " fields");
}

// An enumeration is stored as its integer; {FALSE, TRUE} is bool.
ElementType enumeration(hid_t type) {
  TypeHandle base(H5Tget_super(type));
  return number(base, is_bool(type) ? TypeClass::kBool : TypeClass::kInteger);
}

ElementType opaque(hid_t type) {
  char* tag = H5Tget_tag(type);
  std::string what = "opaque values of " + std::to_string(H5Tget_size(type)) + " bytes";
  if (tag && *tag) what += std::string(", tag ") + tag;
  H5free_memory(tag);
  return other(std::move(what));
}

}  // namespace

bool is_bool(hid_t type) {
  if (H5Tget_class(type) != H5T_ENUM || H5Tget_size(type) != 1 || H5Tget_nmembers(type) != 2) return false;
  for (unsigned i = 0; i < 2; i++) {
    unsigned char value = 0xff;
    if (H5Tget_member_value(type, i, &value) < 0 || value != i) return false;
    if (member_name(type, i) != (i ? "TRUE" : "FALSE")) return false;
  }
  return true;
}

ElementType element_type(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return number(type, TypeClass::kInteger);
    case H5T_FLOAT:
      return number(type, TypeClass::kFloat);
    case H5T_ENUM:
      return enumeration(type);
    case H5T_COMPOUND:
      return compound(type);
    case H5T_STRING:
      return other("strings", true);
    case H5T_OPAQUE:
      return opaque(type);
    case H5T_VLEN:
      return other("sequences of variable length");
    case H5T_REFERENCE:
      return other("references");
    case H5T_BITFIELD:
      return other("bit fields");
    case H5T_ARRAY:
      return other("arrays");
    default:
      return other("values of an unknown type");
  }
}

void add_type(Answer& out, const ElementType& type) {
  out.byte(static_cast<int>(type.kind)).number(type.bytes).byte(static_cast<int>(type.order));
  for (std::size_t n : type.numbers) out.number(n);
}

}  // namespace mckpt::impl
