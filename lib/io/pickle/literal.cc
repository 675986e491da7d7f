// Writes nothing for the whole value as soon as one part of it has no literal.
#include "io/pickle/literal.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "core/base/text.h"

namespace mckpt::impl {
namespace {

using Kind = PickleValue::Kind;

class Literal {
 public:
  // Returns false if the value has no literal.
  bool write(PickleValue v, int depth) {
    if (depth > kMostDepth || out_.size() > kMostBytes) return false;
    switch (v.kind()) {
      case Kind::kNone:
        return add("None");
      case Kind::kBool:
        return add(v.as_bool() ? "True" : "False");
      case Kind::kInt:
      case Kind::kWideInt:
        return add(cat(v.as_int()));
      case Kind::kBigInt:
        return add_hexadecimal(v.bytes());
      case Kind::kFloat:
        return add_float(v.as_float());
      case Kind::kText:
        return quote("'", v.bytes(), true);
      case Kind::kBytes:
        return quote("b'", v.bytes(), false);
      case Kind::kTuple:
        return sequence("(", v, v.size() == 1 ? ",)" : ")", depth);
      case Kind::kList:
        return sequence("[", v, "]", depth);
      case Kind::kSet:  // "{}" is a dict
        return v.size() > 0 && sequence("{", v, "}", depth);
      case Kind::kDict:
        return v.attributes().is_none() && entries(v, depth);
      default:
        return false;
    }
  }

  std::string take() { return std::move(out_); }

 private:
  static constexpr char kDigits[] = "0123456789abcdef";
  static constexpr int kMostDepth = 40;
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;

  bool add(std::string_view text) {
    out_ += text;
    return true;
  }

  bool add_float(double v) {
    if (std::isnan(v)) return add("nan");
    if (std::isinf(v)) return add(v > 0 ? "1e999" : "-1e999");  // Python reads it as an infinity
    char buffer[64];
    std::string text(buffer, std::to_chars(buffer, buffer + sizeof buffer, v).ptr);
    return add(text.find_first_of(".e") == text.npos ? text + ".0" : text);
  }

  // Little-endian two's complement: of a negative number its complement is written, and one added on the way.
  bool add_hexadecimal(std::span<const u8> bytes) {
    const bool negative = !bytes.empty() && bytes.back() >= 0x80;
    std::string digits;
    unsigned carry = negative ? 1 : 0;
    for (u8 b : bytes) {
      const unsigned sum = (negative ? static_cast<u8>(~b) : b) + carry;
      carry = sum >> 8;
      digits += {kDigits[sum & 15], kDigits[sum >> 4 & 15]};
    }
    std::ranges::reverse(digits);
    return add(cat(negative ? "-" : "", "0x", digits.empty() ? "0" : digits));
  }

  // Bytes beyond ASCII are UTF-8 in a text, and escaped in bytes.
  bool quote(std::string_view open, std::span<const u8> bytes, bool utf8) {
    out_ += open;
    for (u8 c : bytes) {
      if ((utf8 && c >= 0x80) || (c >= 0x20 && c < 0x7f && c != '\'' && c != '\\'))
        out_ += static_cast<char>(c);
      else
        out_ += {'\\', 'x', kDigits[c >> 4], kDigits[c & 15]};
    }
    return add("'");
  }

  bool sequence(std::string_view open, PickleValue v, std::string_view close, int depth) {
    out_ += open;
    std::string_view between = "";
    for (PickleValue item : v.items()) {
      out_ += std::exchange(between, ", ");
      if (!write(item, depth + 1)) return false;
    }
    return add(close);
  }

  bool entries(PickleValue v, int depth) {
    out_ += "{";
    std::string_view between = "";
    for (PickleEntry e : v.entries()) {
      out_ += std::exchange(between, ", ");
      if (!write(e.key, depth + 1)) return false;
      out_ += ": ";
      if (!write(e.value, depth + 1)) return false;
    }
    return add("}");
  }

  std::string out_;
};

}  // namespace

std::optional<std::string> pickle_literal(PickleValue v) {
  Literal literal;
  if (!literal.write(v, 0)) return std::nullopt;
  return literal.take();
}

}  // namespace mckpt::impl
