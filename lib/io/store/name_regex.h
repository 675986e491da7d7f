// Regular expressions for tensor names: POSIX extended syntax, with the classes \d, \w and \s that everybody
// writes.
#pragma once

#include <regex.h>

#include <string>
#include <string_view>

namespace mckpt::impl {

// Translates an expression to pure POSIX syntax. Throws kUsage for what would silently mean something else in
// POSIX, such as \t, \1 or (?:.
std::string posix_regex(std::string_view pattern);

// A compiled expression, searched for anywhere in a name. (std::regex recurses once a character and overflows
// the stack on long names; the C library's matcher takes linear time, as there are no back references.)
class NameRegex {
 public:
  explicit NameRegex(const std::string& pattern);  // throws kUsage
  ~NameRegex() { regfree(&regex_); }
  NameRegex(const NameRegex&) = delete;
  NameRegex& operator=(const NameRegex&) = delete;

  bool matches(std::string_view name) const;

 private:
  regex_t regex_;
};

}  // namespace mckpt::impl
