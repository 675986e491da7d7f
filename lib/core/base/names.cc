// Natural order and globs. Names of one checkpoint begin alike, so both skip eight equal bytes at a time.
//
//   name          layers.2.w          layers.10.w          layers.007.w
//   sort key      layers.02.w         layers.110.w         layers.07.w
//
// In a key, a number is preceded by its number of digits less one, so longer numbers sort later; zeros in
// front are dropped.
#include "core/base/names.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/int.h"

namespace mckpt::impl {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The digits at the front of s without leading zeros, and their number with leading zeros.
std::string_view number_at(std::string_view s, std::size_t& length) {
  length = 0;
  while (length < s.size() && is_digit(s[length])) length++;
  std::size_t zeros = 0;
  while (zeros + 1 < length && s[zeros] == '0') zeros++;
  return s.substr(zeros, length - zeros);
}

// True if one of the 8 bytes is a digit.
bool has_digit(const char* s) {
  u64 bytes;
  std::memcpy(&bytes, s, 8);
  u64 value = bytes ^ 0x3030303030303030;  // of a digit: 0 to 9
  u64 from_ten = (value & 0x7f7f7f7f7f7f7f7f) + 0x7676767676767676;
  return ((value | from_ten) & 0x8080808080808080) != 0x8080808080808080;
}

// How many of the 8 bytes at the front of both are equal.
std::size_t equal_front(const char* a, const char* b) {
  u64 x, y;
  std::memcpy(&x, a, 8);
  std::memcpy(&y, b, 8);
  int zeros = std::endian::native == std::endian::little ? std::countr_zero(x ^ y) : std::countl_zero(x ^ y);
  return static_cast<std::size_t>(zeros) / 8;
}

// Matches one character against the set at the front of glob, which begins with '['. Returns the length of
// the set, or 0 if it is never closed: then '[' is a plain character.
std::size_t match_set(std::string_view glob, char c, bool& matched) {
  std::size_t i = 1;
  bool negated = i < glob.size() && (glob[i] == '!' || glob[i] == '^');
  i += negated;
  matched = false;
  for (std::size_t first = i; i < glob.size(); i++) {
    if (glob[i] == ']' && i > first) {
      matched ^= negated;
      return i + 1;
    }
    if (i + 2 < glob.size() && glob[i + 1] == '-' && glob[i + 2] != ']') {
      matched |= glob[i] <= c && c <= glob[i + 2];
      i += 2;
    } else {
      matched |= glob[i] == c;
    }
  }
  return 0;
}

// Matches one character; returns the length of the glob that it used, or 0 for no match. pre: glob is not
// empty.
std::size_t match_one(std::string_view glob, char c) {
  if (glob[0] == '?') return 1;
  if (glob[0] == '\\' && glob.size() > 1) return glob[1] == c ? 2 : 0;
  if (glob[0] == '[') {
    bool matched;
    if (std::size_t length = match_set(glob, c, matched)) return matched ? length : 0;
  }
  return glob[0] == c ? 1 : 0;
}

}  // namespace

// Eight bytes at a time; bytes after the end of a name are never read.
std::size_t common_length(std::string_view a, std::string_view b) {
  std::size_t most = std::min(a.size(), b.size()), n = 0;
  while (n + 8 <= most) {
    std::size_t equal = equal_front(a.data() + n, b.data() + n);
    n += equal;
    if (equal < 8) return n;
  }
  while (n < most && a[n] == b[n]) n++;
  return n;
}

// Two names that differ only in zeros in front of a number are ordered as text, so the order is total.
bool natural_less(std::string_view a, std::string_view b) {
  std::string_view whole_a = a, whole_b = b;
  // Names of one checkpoint begin alike, at least up to a number.
  std::size_t front = common_length(a, b);
  while (front > 0 && is_digit(a[front - 1])) front--;
  a.remove_prefix(front);
  b.remove_prefix(front);
  while (!a.empty() && !b.empty()) {
    if (is_digit(a[0]) && is_digit(b[0])) {
      std::size_t used_a, used_b;
      std::string_view x = number_at(a, used_a), y = number_at(b, used_b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (int order = x.compare(y)) return order < 0;
      a.remove_prefix(used_a);
      b.remove_prefix(used_b);
    } else {
      if (a[0] != b[0]) return static_cast<unsigned char>(a[0]) < static_cast<unsigned char>(b[0]);
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole_a < whole_b;  // "07" and "7" are the same number and two names
}

// A number becomes its length and its digits. The first byte is a digit, so that the number compares with
// other characters as digits do: '0' to '8' for 1 to 9 digits, '9' and four more bytes for longer numbers.
char* write_natural_key(char* to, std::string_view name) {
  for (std::size_t i = 0; i < name.size();) {
    if (i + 8 <= name.size() && !has_digit(name.data() + i)) {
      to = std::copy_n(name.data() + i, 8, to);
      i += 8;
      continue;
    }
    while (i < name.size() && !is_digit(name[i])) *to++ = name[i++];
    if (i == name.size()) break;
    std::size_t used;
    std::string_view digits = number_at(name.substr(i), used);
    if (digits.size() <= 9) {
      *to++ = static_cast<char>('0' + digits.size() - 1);
    } else {
      *to++ = '9';
      for (int shift = 24; shift >= 0; shift -= 8) *to++ = static_cast<char>(digits.size() >> shift & 0xff);
    }
    to = std::copy(digits.begin(), digits.end(), to);
    i += used;
  }
  return to;
}

// Greedy, with one place to go back to: the time is at most the length of the glob times the length of the
// name.
bool glob_match(std::string_view glob, std::string_view name) {
  std::size_t g = 0, n = 0, star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      resume = n;
      continue;
    }
    if (g < glob.size()) {
      if (std::size_t used = match_one(glob.substr(g), name[n])) {
        g += used;
        n++;
        continue;
      }
    }
    if (star == std::string_view::npos) return false;
    g = star + 1;
    n = ++resume;
  }
  while (g < glob.size() && glob[g] == '*') g++;
  return g == glob.size();
}

}  // namespace mckpt::impl
