// Escaping, number formats and spelling suggestions. The text of a name in a file is not trusted: control
// characters could move a terminal's cursor, and characters that reorder text could make a name look like
// another one.
//
//   escaped("a\x1b[2Jb")     a\x1b[2Jb       the escape character is written as four plain characters
//   with_commas(1235814400)  1,235,814,400
//   human_bytes(1536)        1.50 KiB
#include "core/base/text.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <vector>

#include "core/base/hidden_chars.h"
#include "core/base/int.h"

namespace mckpt::impl {
namespace {

// True if a terminal shows the character of this well-formed sequence and does nothing else.
bool printable(std::string_view sequence) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(sequence[i]); };
  if (sequence.size() == 1) return byte(0) >= 0x20 && byte(0) != 0x7f;
  unsigned point = byte(0) & (0x7fu >> sequence.size());
  for (std::size_t i = 1; i < sequence.size(); i++) point = point << 6 | (byte(i) & 0x3f);
  const bool c1_control = point < 0xa0;
  return !c1_control && !is_hidden_char(point);
}

// True if the 8 bytes at p are printable ASCII, 0x20 to 0x7e: for any other byte, adding 1 or subtracting
// 0x20 sets its highest bit.
bool eight_plain(const char* p) {
  constexpr u64 kEach = 0x0101010101010101;
  u64 v;
  std::memcpy(&v, p, sizeof v);
  return ((v | (v + kEach) | (v - 0x20 * kEach)) & 0x80 * kEach) == 0;
}

}  // namespace

bool is_ascii(std::string_view s) {
  // Most texts are short: eight bytes at a time, then the last eight, which may overlap the ones before.
  u64 all = 0;
  auto look = [&](std::size_t at) {
    u64 eight;
    std::memcpy(&eight, s.data() + at, sizeof eight);
    all |= eight;
  };
  if (s.size() >= sizeof all) {
    for (std::size_t at = 0; at + sizeof all < s.size(); at += sizeof all) look(at);
    look(s.size() - sizeof all);
  } else {
    for (char c : s) all |= static_cast<unsigned char>(c);
  }
  return (all & 0x8080808080808080) == 0;
}

// Refuses what the standard refuses: overlong forms, surrogates, points beyond U+10FFFF.
std::size_t utf8_sequence(std::string_view s) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  unsigned char b = byte(0);
  if (b < 0x80) return 1;
  std::size_t n = b >= 0xf0 && b <= 0xf4 ? 4 : b >= 0xe0 && b < 0xf0 ? 3 : b >= 0xc2 && b < 0xe0 ? 2 : 0;
  if (n == 0 || s.size() < n) return 0;
  for (std::size_t i = 1; i < n; i++)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  bool overlong = (b == 0xe0 && byte(1) < 0xa0) || (b == 0xf0 && byte(1) < 0x90);
  bool surrogate = b == 0xed && byte(1) > 0x9f;
  bool beyond = b == 0xf4 && byte(1) > 0x8f;
  return overlong || surrogate || beyond ? 0 : n;
}

// Well-formed UTF-8 is kept where a terminal shows it and does nothing else; every other byte becomes \xNN.
void append_escaped(std::string& out, std::string_view s, std::size_t max_bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::size_t begin = out.size();
  while (!s.empty()) {
    std::size_t used = out.size() - begin;
    if (used >= max_bytes) {
      out += "...";
      return;
    }
    // Nearly all names consist of printable ASCII.
    std::size_t plain = 0, room = std::min(s.size(), max_bytes - used);
    while (plain + 8 <= room && eight_plain(s.data() + plain)) plain += 8;
    while (plain < room && s[plain] >= 0x20 && s[plain] < 0x7f) plain++;
    if (plain > 0) {
      out += s.substr(0, plain);
      s.remove_prefix(plain);
      continue;
    }
    if (std::size_t n = utf8_sequence(s); n != 0 && printable(s.substr(0, n))) {
      out += s.substr(0, n);
      s.remove_prefix(n);
    } else {
      unsigned char b = static_cast<unsigned char>(s[0]);
      out += {'\\', 'x', kHex[b >> 4], kHex[b & 15]};
      s.remove_prefix(1);
    }
  }
}

std::string escaped(std::string_view s, std::size_t max_bytes) {
  std::string out;
  append_escaped(out, s, max_bytes);
  return out;
}

// In groups of three digits, counted from the end.
void append_with_commas(std::string& out, std::int64_t n) {
  char digits[20], text[26];  // the digits of -2^63
  const char *at = digits, *end = std::to_chars(digits, std::end(digits), n).ptr;
  char* to = text;
  if (*at == '-') *to++ = *at++;
  *to++ = *at++;
  for (; at != end; *to++ = *at++)
    if ((end - at) % 3 == 0) *to++ = ',';
  out.append(text, to);
}

std::string with_commas(std::int64_t n) {
  std::string out;
  append_with_commas(out, n);
  return out;
}

std::string counted(std::int64_t n, std::string_view noun) {
  return cat(with_commas(n), " ", noun, n == 1 ? "" : "s");
}

// Three or so digits: 512 B, 1.50 KiB, 14.5 KiB.
std::string human_bytes(std::int64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double v = static_cast<double>(bytes);
  int unit = 0;
  while (v >= 1024 && unit < 6) v /= 1024, unit++;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : v < 10 ? "%.2f %s" : "%.1f %s", v, kUnits[unit]);
  return text;
}

// Three rows of the table of prefixes are enough: a swap of neighbours looks two rows back.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); j++) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); i++) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); j++) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

}  // namespace mckpt::impl
