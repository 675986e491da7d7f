// Decodes numbers and strings that protocol 0 writes as text. Nothing depends on the locale.
#include "io/pickle/text.h"

#include <charconv>

#include "core/base/text.h"

namespace mckpt::impl {
namespace {

// Appends the code point in 1 to 4 bytes; single surrogates too.
void append_utf8(std::string& out, u32 point) {
  auto tail = [&](u32 shift) { out += static_cast<char>(0x80 | (point >> shift & 0x3f)); };
  if (point < 0x80) {
    out += static_cast<char>(point);
  } else if (point < 0x800) {
    out += static_cast<char>(0xc0 | point >> 6);
    tail(0);
  } else if (point < 0x10000) {
    out += static_cast<char>(0xe0 | point >> 12);
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xf0 | point >> 18);
    tail(12), tail(6), tail(0);
  }
}

// The number of `digits` digits at the front of `text`, which it removes.
std::optional<u32> take_digits(std::string_view& text, std::size_t digits, int base) {
  if (text.size() < digits) return std::nullopt;
  u32 v = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + digits, v, base);
  if (ec != std::errc() || end != text.data() + digits) return std::nullopt;
  text.remove_prefix(digits);
  return v;
}

// The character that a backslash and `c` mean, or 0.
char simple_escape(char c) {
  static constexpr std::string_view kFrom = "\\'\"abfnrtv", kTo = "\\'\"\a\b\f\n\r\t\v";
  std::size_t at = kFrom.find(c);
  return at == kFrom.npos ? '\0' : kTo[at];
}

}  // namespace

std::optional<std::string> unquoted(std::string_view literal) {
  if (literal.size() < 2 || literal.front() != literal.back() || (literal[0] != '\'' && literal[0] != '"'))
    return std::nullopt;
  std::string_view rest = literal.substr(1, literal.size() - 2);
  std::string out;
  while (!rest.empty()) {
    char c = rest[0];
    rest.remove_prefix(1);
    if (c != '\\') {
      out += c;
      continue;
    }
    if (rest.empty()) return std::nullopt;
    char e = rest[0];
    if (char plain = simple_escape(e); plain != '\0') {
      out += plain;
      rest.remove_prefix(1);
      continue;
    }
    bool hex = e == 'x';
    if (hex) rest.remove_prefix(1);
    std::optional<u32> v = hex ? take_digits(rest, 2, 16) : take_digits(rest, 3, 8);
    if (!v || *v > 0xff) return std::nullopt;
    out += static_cast<char>(*v);
  }
  return out;
}

std::optional<std::string> raw_unicode_unescaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    bool narrow = text.starts_with("\\u"), wide = text.starts_with("\\U");
    if (narrow || wide) {
      text.remove_prefix(2);
      std::optional<u32> point = take_digits(text, wide ? 8 : 4, 16);
      if (!point || *point > 0x10ffff) return std::nullopt;
      append_utf8(out, *point);
    } else {
      append_utf8(out, static_cast<u8>(text[0]));  // the rest is Latin-1
      text.remove_prefix(1);
    }
  }
  return out;
}

std::optional<std::string> latin1_encoded(std::string_view utf8) {
  std::string out;
  out.reserve(utf8.size());
  for (std::size_t i = 0; i < utf8.size(); i++) {
    u8 c = static_cast<u8>(utf8[i]);
    if (c >= 0x80) {
      if ((c != 0xc2 && c != 0xc3) || i + 1 == utf8.size()) return std::nullopt;
      c = static_cast<u8>(c << 6 | (static_cast<u8>(utf8[++i]) & 0x3f));
    }
    out += static_cast<char>(c);
  }
  return out;
}

std::optional<i64> decimal(std::string_view text) {
  i64 v = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return v;
}

// Multiplies by ten and adds, digit by digit, then negates.
std::optional<std::vector<u8>> decimal_wide(std::string_view text) {
  constexpr std::size_t kMostDigits = 1000;  // the work grows with the square
  bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.empty() || text.size() > kMostDigits) return std::nullopt;
  std::vector<u8> out(1);
  for (char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    unsigned carry = static_cast<unsigned>(c - '0');
    for (u8& byte : out) {
      carry += byte * 10u;
      byte = static_cast<u8>(carry);
      carry >>= 8;
    }
    if (carry != 0) out.push_back(static_cast<u8>(carry));
  }
  out.push_back(0);  // room for the sign
  unsigned carry = 1;
  for (u8& byte : out) {
    if (!negative) break;
    carry += static_cast<u8>(~byte);
    byte = static_cast<u8>(carry);
    carry >>= 8;
  }
  return out;
}

std::optional<double> decimal_float(std::string_view text) {
  double v = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return v;
}

bool is_python_utf8(std::string_view text) {
  if (is_ascii(text)) return true;
  while (!text.empty()) {
    std::size_t n = utf8_sequence(text);
    bool surrogate = n == 0 && text.size() >= 3 && text[0] == '\xed' && (text[1] & 0xe0) == 0xa0 &&
                     (text[2] & 0xc0) == 0x80;
    if (n == 0 && !surrogate) return false;
    text.remove_prefix(surrogate ? 3 : n);
  }
  return true;
}

}  // namespace mckpt::impl
