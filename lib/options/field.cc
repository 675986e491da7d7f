// Lists of words are separated by single spaces.
#include "options/field.h"

#include <algorithm>

#include "core/base/error.h"

namespace mckpt::impl {

std::vector<std::string> words_of(std::string_view words) {
  std::vector<std::string> out;
  while (!words.empty()) {
    std::size_t end = std::min(words.find(' '), words.size());
    out.emplace_back(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return out;
}

std::vector<std::string> flags_of(const Field& field) {
  if (!field.flags.empty()) return words_of(field.flags);
  std::string name(field.name);
  std::ranges::replace(name, '_', '-');
  return {name};
}

PathKind path_kind(std::string_view value) {
  for (std::string_view name : {"DIR", "HF_DIR"})
    if (value == name) return PathKind::kFolder;
  for (std::string_view name : {"PATH", "SRC", "DST", "FILE", "MODEL|SHAPE", "SUBJECT"})
    if (value == name) return PathKind::kAny;
  return PathKind::kNone;
}

std::pair<std::string, std::string> dtype_rule_of(std::string_view text, std::string_view setting) {
  std::size_t equals = text.rfind('=');
  if (equals == text.npos)
    throw Error(Code::kUsage, cat("the value of `", setting, "` is not allowed"))
        .expected("a glob, '=' and a type")
        .found(escaped(text));
  return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

std::vector<std::string> parts_of(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  for (const std::string& text : texts)
    for (std::size_t at = 0; at <= text.size();) {
      std::size_t end = std::min(text.find(',', at), text.size());
      out.push_back(text.substr(at, end - at));
      at = end + 1;
    }
  return out;
}

}  // namespace mckpt::impl
