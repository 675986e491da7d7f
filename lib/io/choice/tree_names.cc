// Parts end at dots, and the name of a file in front ends at its colon.
#include "io/choice/tree_names.h"

#include <algorithm>

#include "core/base/text.h"
#include "io/store/names/torch_names.h"

namespace mckpt::impl {
namespace {

// The colon behind the name of a file, as in "model.pt:layers.0.weight", whose dots divide nothing; npos if
// the name does not begin with a file.
std::size_t file_end(std::string_view name) {
  std::size_t colon = name.find(':');
  return colon != name.npos && has_torch_suffix(name.substr(0, colon)) ? colon : name.npos;
}

}  // namespace

std::size_t part_end(std::string_view name, std::size_t begin) {
  std::size_t colon = begin == 0 ? file_end(name) : name.npos;
  return std::min(colon != name.npos ? colon : name.find('.', begin), name.size());
}

bool ends_part(std::string_view name, std::size_t at) {
  std::size_t colon = file_end(name);
  return at == colon || (name[at] == '.' && (colon == name.npos || at > colon));
}

bool is_number(std::string_view s) {
  return !s.empty() && s.size() < 10 &&
         std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::optional<ExpertName> expert_name(std::string_view name) {
  for (std::string_view stem : {"weight", "bias"}) {
    if (!name.starts_with(stem)) continue;
    const std::size_t end = std::min(name.find_first_not_of("0123456789", stem.size()), name.size());
    const std::string_view number = name.substr(stem.size(), end - stem.size()), ending = name.substr(end);
    if (is_number(number) && (ending.empty() || ending == "_w" || ending == "_v"))
      return ExpertName{stem, number, ending};
  }
  return std::nullopt;
}

std::optional<std::pair<std::string_view, std::string_view>> rank_in_name(std::string_view name) {
  constexpr std::string_view kFront = "mp_rank_";
  if (!name.starts_with(kFront)) return std::nullopt;
  name.remove_prefix(kFront.size());
  const std::size_t end = std::min(name.find_first_not_of("0123456789_"), name.size());
  if (end == 0) return std::nullopt;
  return std::pair{name.substr(0, end), name.substr(end)};
}

std::string braced_ranges(const std::vector<std::string_view>& numbers) {
  auto number = [&](std::size_t i) { return std::stol(std::string(numbers[i])); };
  std::string out = "{";
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && number(end) == number(end - 1) + 1) end++;
    out += cat(i ? "," : "", numbers[i]);
    if (end - i > 1) out += cat(end - i == 2 ? "," : "..", numbers[end - 1]);
    i = end;
  }
  return out + "}";
}

}  // namespace mckpt::impl
