// Translates \d, \D, and in brackets \d, \w and \s, to what POSIX calls them, passes \w, \s, \b and escaped
// signs on (the C library knows them), and refuses what POSIX would read differently. The translation goes
// through the pattern once, from left to right; brackets have rules of their own: in them a backslash is an
// ordinary character for POSIX, and "]" ends them unless it comes first.
#include "io/choice/name_regex.h"

#include <array>

#include "core/base/error.h"
#include "core/base/text.h"

namespace mckpt::impl {
namespace {

bool is_alnum(char c) { return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'); }

// One pattern on its way.
class Translation {
 public:
  explicit Translation(std::string_view pattern) : pattern_(pattern) {}

  std::string run() {
    while (at_ < pattern_.size()) {
      if (pattern_.substr(at_).starts_with("(?")) throw_unknown("(?");
      if (pattern_[at_] == '[') {
        take_set();
      } else if (pattern_[at_] == '\\' && at_ + 1 < pattern_.size()) {
        take_escape();
      } else {
        out_ += pattern_[at_++];
      }
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void throw_unknown(std::string_view what) const {
    throw Error(Code::kUsage,
                cat("the regular expression has ", escaped(what), ", which is not part of its syntax"))
        .expected("POSIX extended syntax, with \\d, \\w, \\s and \\b")
        .found(escaped(pattern_));
  }

  void take_escape() {
    char c = pattern_[at_ + 1];
    std::string_view two = pattern_.substr(at_, 2);
    at_ += 2;
    if (c == 'd' || c == 'D') {
      out_ += c == 'd' ? "[0-9]" : "[^0-9]";
    } else if (is_alnum(c) && std::string_view("wWsSbB").find(c) == std::string_view::npos) {
      throw_unknown(two);
    } else {
      out_ += two;
    }
  }

  // Takes "\x" inside brackets, where POSIX has classes such as [:alnum:] instead.
  void take_escape_in_set() {
    char c = pattern_[at_ + 1];
    if (c == 'd') {
      out_ += "0-9";
    } else if (c == 'w') {
      out_ += "[:alnum:]_";
    } else if (c == 's') {
      out_ += "[:space:]";
    } else if (is_alnum(c) || c == ']' || c == '[' || c == '^' || c == '-') {
      throw_unknown(cat(pattern_.substr(at_, 2), " in brackets"));
    } else {
      out_ += c;
    }
    at_ += 2;
  }

  // Takes from "[" to "]". A "]" that comes first does not end the set; "[:alpha:]" is one piece of it.
  void take_set() {
    out_ += pattern_[at_++];
    if (at_ < pattern_.size() && pattern_[at_] == '^') out_ += pattern_[at_++];
    for (bool first = true; at_ < pattern_.size(); first = false) {
      char c = pattern_[at_], next = at_ + 1 < pattern_.size() ? pattern_[at_ + 1] : '\0';
      if (c == '[' && (next == ':' || next == '.' || next == '=')) {
        std::size_t end = pattern_.find(std::array{next, ']', '\0'}.data(), at_ + 2);
        end = end == pattern_.npos ? pattern_.size() : end + 2;
        out_ += pattern_.substr(at_, end - at_);
        at_ = end;
      } else if (c == '\\' && next != '\0') {
        take_escape_in_set();
      } else {
        out_ += c;
        at_++;
        if (c == ']' && !first) return;
      }
    }
  }

  std::string_view pattern_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string posix_regex(std::string_view pattern) { return Translation(pattern).run(); }

NameRegex::NameRegex(const std::string& pattern) {
  if (int fault = regcomp(&regex_, posix_regex(pattern).c_str(), REG_EXTENDED | REG_NOSUB)) {
    char text[200];
    regerror(fault, &regex_, text, sizeof text);
    throw Error(Code::kUsage, cat("the regular expression is not valid: ", text)).found(escaped(pattern));
  }
}

bool NameRegex::matches(std::string_view name) const {
  std::string ended(name);  // some libraries look for the terminating zero although the range is given
  regmatch_t range = {0, static_cast<regoff_t>(ended.size())};
  return regexec(&regex_, ended.c_str(), 0, &range, REG_STARTEND) == 0;
}

}  // namespace mckpt::impl
