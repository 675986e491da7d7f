// Translates \d, \D, and in brackets \d, \w and \s, to what POSIX calls them, passes \w, \s, \b and escaped
// signs on (the C library knows them), and refuses what POSIX would read differently. The translation goes
// through the pattern once, from left to right; brackets have rules of their own: in them a backslash is an
// ordinary character for POSIX, and "]" ends them unless it comes first.
#include "io/choice/name_regex.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "core/base/error.h"
#include "core/base/int.h"
#include "core/base/text.h"

namespace mckpt::impl {
namespace {

bool is_alnum(char c) { return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'); }

// The C library copies what is repeated for each time: a{1,255}{1,255} has 65,025 places, and as many of them
// take gigabytes.
constexpr i64 kMostPlaces = 4096;
// The C library calls itself for each group in a group.
constexpr std::size_t kMostGroups = 256;

// Counts the places of an expression, as its parts come.
class Places {
 public:
  // False if too many groups are in each other then.
  [[nodiscard]] bool begin_group() {
    open_.emplace_back(0);
    return open_.size() <= kMostGroups;
  }
  void end_group() {
    if (open_.size() == 1) return;  // the C library says that it is not valid
    last_ = open_.back();
    open_.pop_back();
    open_.back() += last_;
  }
  void atom() { open_.back() += last_ = 1; }
  // False if there are too many then.
  [[nodiscard]] bool repeat(i64 times) {
    times = std::clamp<i64>(times, 1, kMostPlaces + 1);
    open_.back() += last_ * (times - 1);
    last_ *= times;
    return open_.back() <= kMostPlaces;
  }

 private:
  std::vector<i64> open_ = {0};  // of the groups around the place, the whole expression first
  i64 last_ = 0;                 // of what a repeat is of
};

// The times of "{2,5}" at the beginning of a text: 5, of "{2,}" 3, as the C library copies it; 1 of a text
// that is not a repeat.
i64 times_of(std::string_view text) {
  i64 least = 0, most = 0;
  const char *end = text.data() + text.size(), *at = text.data() + 1;
  if (auto [after, error] = std::from_chars(at, end, least); error == std::errc()) at = after;
  if (at == end || *at != ',') return least;
  auto [after, error] = std::from_chars(at + 1, end, most);
  return error == std::errc() ? std::max(least, most) : least + 1;
}

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
        take_sign();
        continue;
      }
      places_.atom();
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

  void take_sign() {
    const char c = pattern_[at_];
    const std::size_t end = c == '{' ? std::min(pattern_.find('}', at_), pattern_.size() - 1) + 1 : at_ + 1;
    const std::string_view sign = pattern_.substr(at_, end - at_);
    out_ += sign;
    at_ = end;
    bool few = true;
    if (c == '(') {
      if (!places_.begin_group())
        throw Error(Code::kUsage, "the regular expression has too many groups in each other")
            .expected(cat("at most ", kMostGroups - 1));
    } else if (c == ')') {
      places_.end_group();
    } else if (c == '+' || c == '{') {
      few = places_.repeat(c == '+' ? 2 : times_of(sign));
    } else if (c != '*' && c != '?') {
      places_.atom();  // also of signs that stand for no character
    }
    if (few) return;
    throw Error(Code::kUsage, "the repeats of the regular expression are too many")
        .expected(cat("at most ", kMostPlaces, " places when each repeat is written out"))
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
  Places places_;
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
