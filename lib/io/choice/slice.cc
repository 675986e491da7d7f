// Parses the text between the brackets of a slice: splits it at commas, gives "..." the dimensions that no
// other part names, and reads each part as an index or as begin:end, where negative numbers count from the
// end.
#include "io/choice/slice.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/base/error.h"
#include "core/items/shape.h"

namespace mckpt::impl {
namespace {

[[noreturn]] void fail(std::string message, std::string_view found) {
  throw Error(Code::kUsage, std::move(message))
      .found(cat("'", escaped(found), "'"))
      .help("write it as in 'w[0:4, :8]' or 'w[-1]'");
}

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

std::optional<i64> parse_index(std::string_view text) {
  text = trimmed(text);
  if (text.empty()) return std::nullopt;
  i64 v = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (ec != std::errc{} || end != text.data() + text.size()) fail("an index is not a whole number", text);
  return v;
}

SliceRange parse_range(std::string_view part, i64 size) {
  std::size_t colon = part.find(':');
  if (colon == std::string_view::npos) {
    std::optional<i64> index = parse_index(part);
    if (!index) fail("an index is missing in the slice", part);
    i64 at = *index < 0 ? *index + size : *index;
    if (at < 0 || at >= size) fail(cat("the index is outside of a dimension of size ", size), part);
    return {at, at + 1, true};
  }
  if (part.find(':', colon + 1) != std::string_view::npos) fail("a slice with a step is not supported", part);
  auto bound = [&](std::string_view text, i64 missing) {
    i64 v = parse_index(text).value_or(missing);
    return std::clamp<i64>(v < 0 ? v + size : v, 0, size);
  };
  i64 begin = bound(part.substr(0, colon), 0), end = bound(part.substr(colon + 1), size);
  return {begin, std::max(begin, end), false};
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    std::size_t comma = text.find(',');
    parts.push_back(trimmed(text.substr(0, comma)));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

SlicedName split_sliced_name(std::string_view text) {
  std::size_t open = text.rfind('[');
  if (open == std::string_view::npos || !text.ends_with(']')) return {std::string(text), "", false};
  return {std::string(text.substr(0, open)), std::string(text.substr(open + 1, text.size() - open - 2)),
          true};
}

std::vector<SliceRange> parse_slice(std::string_view slice, std::span<const i64> dims) {
  std::vector<SliceRange> ranges;
  for (i64 size : dims) ranges.push_back({0, size, false});
  if (trimmed(slice).empty()) return ranges;
  std::vector<std::string_view> parts = split(slice);
  auto ellipsis = std::find(parts.begin(), parts.end(), "...");
  std::size_t named = parts.size() - (ellipsis != parts.end());
  if (named > dims.size())
    fail(cat("the slice has ", named, " indexes, the tensor ", dims_to_string(dims), " has ", dims.size(),
             " dimensions"),
         slice);
  if (std::count(parts.begin(), parts.end(), "...") > 1) fail("the slice has more than one ellipsis", slice);
  std::size_t d = 0;
  for (std::string_view part : parts) {
    if (part == "...") {
      d += dims.size() - named;
    } else {
      ranges[d] = parse_range(part, dims[d]);
      d++;
    }
  }
  return ranges;
}

}  // namespace mckpt::impl
