// Regular expressions for tensor names (--regex): POSIX extended syntax, with the classes \d, \w and \s that
// users know from Python.
//
//   layers\.[0-3]\..*q_proj        as POSIX has it
//   layers\.\d+\.mlp               \d becomes [0-9]
//   (?:q|k)_proj                   refused: POSIX has no (?:, and would read it as something else
//
// An expression matches if it is found anywhere in the name; ^ and $ tie it to the ends.
#pragma once

#include <regex.h>

#include <string>
#include <string_view>

namespace mckpt::impl {

// Translates an expression to pure POSIX syntax. Throws kUsage for syntax that would mean something else in
// POSIX without an error, such as \t, \1 or (?:.
std::string posix_regex(std::string_view pattern);

// A compiled expression. It uses the C library's matcher: std::regex recurses once for each character and
// overflows the stack on long names, while the C library takes linear time, as there are no back references.
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
