// Builds text without <format>, which g++ 12 and clang 14 do not have: cat(1, " of ", n). Escapes names from
// files before a person sees them.
#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace mckpt::impl {

// append_one() appends one part in its usual form: text as it is, bool as true or false, numbers in their
// shortest form. cat() appends all its parts.
inline void append_one(std::string& out, std::string_view v) { out += v; }
template <std::same_as<char> T>
void append_one(std::string& out, T v) {
  out += v;
}
// Constrained, because an array would otherwise be converted to bool, not to string_view.
template <std::same_as<bool> T>
void append_one(std::string& out, T v) {
  out += v ? "true" : "false";
}
template <typename T>
requires(std::is_arithmetic_v<T> && !std::same_as<T, bool> &&
         !std::same_as<T, char>) void append_one(std::string& out, T v) {
  char buf[32];  // a double in shortest form needs at most 24
  auto [end, ec] = std::to_chars(buf, buf + sizeof buf, v);
  out.append(buf, end);
}

template <typename... Parts>
std::string cat(const Parts&... parts) {
  std::string out;
  (append_one(out, parts), ...);
  return out;
}

// True if all bytes are ASCII. Nearly all text is, so code that handles single characters checks this first.
bool is_ascii(std::string_view s);

// Length of the well-formed UTF-8 sequence at the front of s, or 0. pre: s is not empty.
std::size_t utf8_sequence(std::string_view s);

// Printable form of untrusted text: control bytes, DEL, C1 controls and malformed UTF-8 become \xNN, and
// the text is cut at max_bytes, with "..." at its end.
std::string escaped(std::string_view untrusted, std::size_t max_bytes = 200);
void append_escaped(std::string& out, std::string_view untrusted, std::size_t max_bytes = 200);

// "a, b, c and 4 more"
template <typename Range>
std::string listed(const Range& names, std::size_t most = 5) {
  std::string out;
  std::size_t n = 0;
  for (const auto& name : names) {
    if (n == most) {
      out += cat(" and ", static_cast<long long>(std::size(names) - most), " more");
      break;
    }
    if (n++) out += ", ";
    out += escaped(name);
  }
  return out;
}

std::string with_commas(std::int64_t n);  // "1,235,814,400"
void append_with_commas(std::string& out, std::int64_t n);
std::string counted(std::int64_t n, std::string_view noun);  // "1 rank", "1,024 ranks"
std::string human_bytes(std::int64_t bytes);                 // "1.2 GiB"

// Insertions, deletions, replacements and swaps of neighbours that make a of b. Takes |a| * |b| steps.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to `word` by edit distance (a swap of neighbours counts one), or "" if none is so
// near that it may have been meant.
template <typename Range>
std::string_view nearest(std::string_view word, const Range& candidates) {
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3 + 1);
  for (std::string_view c : candidates) {
    std::size_t least = c.size() > word.size() ? c.size() - word.size() : word.size() - c.size();
    if (least >= best_distance) continue;
    if (std::size_t d = edit_distance(word, c); d < best_distance) best = c, best_distance = d;
  }
  return best;
}

}  // namespace mckpt::impl
