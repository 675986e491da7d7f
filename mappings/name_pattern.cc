// Fills the placeholders of a name with numbers, and checks the placeholders of a table:
//
//   append_name("layers.{L}.experts.{E}.w", L = 3, E = 7)  ->  layers.3.experts.7.w
//   placeholders("layers.{L}.experts.{E}.w")               ->  "LE"
#include "mappings/name_pattern.h"
#include "core/base/error.h"

#include <charconv>

namespace mckpt::impl {

void append_name(std::string& out, std::string_view pattern, const Numbers& numbers) {
  while (true) {
    std::size_t brace = pattern.find('{');
    out += pattern.substr(0, brace);
    if (brace == std::string_view::npos) return;
    char digits[20];
    auto [end, ec] = std::to_chars(digits, digits + sizeof digits, numbers[pattern[brace + 1]]);
    out.append(digits, end);
    pattern.remove_prefix(brace + 3);  // "{L}"
  }
}

std::string placeholders(std::string_view pattern) {
  std::string letters;
  for (std::size_t i = 0; i < pattern.size(); i++) {
    if (pattern[i] == '}') throw Error(Code::kBadMap, cat("'", escaped(pattern), "' has a stray '}'"));
    if (pattern[i] != '{') continue;
    bool known = i + 2 < pattern.size() && pattern[i + 2] == '}' &&
                 Numbers::kLetters.find(pattern[i + 1]) != std::string_view::npos;
    if (!known)
      throw Error(Code::kBadMap, cat("'", escaped(pattern), "' has a placeholder that is not known"))
          .help("known are {L}, {E}, {S}, {M}, {I}, {N}, {F} and {P}");
    letters += pattern[i + 1];
    i += 2;
  }
  return letters;
}

}  // namespace mckpt::impl
