// A quote ends the quotes, is escaped, and begins them again.
#include "core/base/argument.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "core/base/text.h"

namespace mckpt::impl {

std::string as_argument(const std::string& path) {
  const std::string text = escaped(path, 4096);
  const bool plain = std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("/._-+=:,@%").find(c) != std::string_view::npos;
  });
  if (plain) return text;
  std::string out = "'";
  for (char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

}  // namespace mckpt::impl
