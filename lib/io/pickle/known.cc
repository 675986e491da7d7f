// Prints paths, numpy arrays and scalars. numpy pickles an array as a call that makes an empty one, and a
// state (version, shape, dtype, order, data); a scalar as a call (dtype, bytes).
#include "io/pickle/known.h"

#include <bit>

#include "core/base/text.h"
#include "io/pickle/classes.h"

namespace mckpt::impl {
namespace {

using Kind = PickleValue::Kind;

constexpr i64 kMostDimensions = 64;  // of numpy's arrays

// The value as a numpy dtype; null if it is something else.
const PickleObject* numpy_dtype(PickleValue v) {
  bool is_dtype = v.is(Kind::kObject) && v.as_object().type->known == Known::kNumpyDType;
  return is_dtype ? &v.as_object() : nullptr;
}

// "u4" -> "uint32"; a type that is not a plain number keeps its code.
std::string dtype_text(PickleValue v) {
  const PickleObject* o = numpy_dtype(v);
  PickleValue code = o != nullptr ? o->args.at(0) : PickleValue();
  if (!code.is(Kind::kText)) return "?";
  std::string_view c = code.text();
  std::string_view kind = c.empty()     ? ""
                          : c[0] == 'i' ? "int"
                          : c[0] == 'u' ? "uint"
                          : c[0] == 'f' ? "float"
                          : c[0] == 'c' ? "complex"
                                        : "";
  if (c == "b1") return "bool";
  if (kind.empty() || c.size() != 2 || c[1] < '1' || c[1] > '8') return escaped(c, 20);
  return cat(kind, (c[1] - '0') * 8);
}

// The state of a dtype is (version, order, ...), and its order '>' or '<'.
bool is_big_endian(PickleValue dtype) {
  const PickleObject* o = numpy_dtype(dtype);
  PickleValue order = o != nullptr ? o->state.at(1) : PickleValue();
  return order.is(Kind::kText) && order.text() == ">";
}

// The value of a numpy scalar that is a plain number; "..." for others.
std::string scalar_text(PickleValue dtype, std::span<const u8> bytes) {
  std::string type = dtype_text(dtype);
  if (bytes.empty() || bytes.size() > 8) return "...";
  u64 bits = 0;
  for (std::size_t i = 0; i < bytes.size(); i++)
    bits |= u64{bytes[is_big_endian(dtype) ? bytes.size() - 1 - i : i]} << 8 * i;
  unsigned shift = 64 - 8 * static_cast<unsigned>(bytes.size());
  if (type == "bool") return bits ? "True" : "False";
  if (type.starts_with("uint")) return cat(bits);
  if (type.starts_with("int")) return cat(static_cast<i64>(bits << shift) >> shift);
  if (type == "float64" && bytes.size() == 8) return cat(std::bit_cast<double>(bits));
  if (type == "float32" && bytes.size() == 4) return cat(std::bit_cast<float>(static_cast<u32>(bits)));
  return "...";
}

// The arguments of a path are its parts: ('/', 'data', 'x').
std::string path_text(const PickleObject& o) {
  std::string path;
  for (PickleValue part : o.args.tuple()) {
    if (!part.is(Kind::kText)) continue;
    if (!path.empty() && !path.ends_with('/')) path += '/';
    path += part.text();
  }
  return cat(escaped(o.type->name), "('", escaped(path), "')");
}

// "'f4'". Whatever else stands in place of a code is not written out: it may hold the dtype itself.
std::string code_text(PickleValue code) {
  return code.is(Kind::kText) ? cat("'", escaped(code.text(), 20), "'") : "...";
}

// "(624,)". Whatever else stands in place of a shape is not written out: it may hold the array itself.
std::string shape_text(PickleValue shape) {
  if (!shape.is(Kind::kTuple) || shape.size() > kMostDimensions) return "...";
  std::string sizes;
  for (PickleValue size : shape.items()) {
    if (!size.is(Kind::kInt)) return "...";
    sizes += cat(sizes.empty() ? "" : " ", size.as_int(), ",");
  }
  if (shape.size() > 1) sizes.pop_back();
  return cat("(", sizes, ")");
}

}  // namespace

std::string known_object(const PickleObject& o) {
  switch (o.type->known) {
    case Known::kPath:
      return path_text(o);
    case Known::kNumpyReconstruct:  // BUILD gives (version, shape, dtype, order, data)
      return cat("ndarray ", dtype_text(o.state.at(2)), " ", shape_text(o.state.at(1)));
    case Known::kNumpyFromBuffer:  // (data, dtype, shape, order)
      return cat("ndarray ", dtype_text(o.args.at(1)), " ", shape_text(o.args.at(2)));
    case Known::kNumpyDType:
      return cat("dtype(", code_text(o.args.at(0)), ")");
    case Known::kNumpyScalar: {
      PickleValue data = o.args.at(1);
      return cat(dtype_text(o.args.at(0)), "(",
                 data.is(Kind::kBytes) ? scalar_text(o.args.at(0), data.bytes()) : "...", ")");
    }
    default:
      return "";
  }
}

}  // namespace mckpt::impl
