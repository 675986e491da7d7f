// Strings are searched eight bytes at a time for the bytes that end or escape them.
#include "io/safetensors/header_json.h"

#include <bit>
#include <charconv>
#include <cstring>

#include "core/base/error.h"

namespace mckpt::impl {
namespace {

constexpr u64 kOnes = 0x0101010101010101;
constexpr u64 kHighs = 0x8080808080808080;

u64 load8(const char* p) {
  u64 v;
  std::memcpy(&v, p, 8);
  return v;
}

// A byte's high bit is set where that byte of v is zero; bytes above the first zero may be wrong.
u64 zero_bytes(u64 v) { return (v - kOnes) & ~v & kHighs; }

// Nonzero where a string of 8 bytes needs a closer look: a quote, a backslash or a control byte. The lowest
// set bit is right.
u64 special_bytes(u64 v) {
  u64 control = (v - kOnes * 0x20) & ~v & kHighs;
  return zero_bytes(v ^ (kOnes * '"')) | zero_bytes(v ^ (kOnes * '\\')) | control;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// The length of the JSON number at the front of s; 0 when there is none.
std::size_t number_length(std::string_view s) {
  std::size_t i = 0;
  auto digits = [&] {
    std::size_t before = i;
    while (i < s.size() && is_digit(s[i])) i++;
    return i > before;
  };
  if (i < s.size() && s[i] == '-') i++;
  bool leading_zero = i < s.size() && s[i] == '0';
  std::size_t begin = i;
  if (!digits() || (leading_zero && i - begin > 1)) return 0;
  if (i < s.size() && s[i] == '.') {
    i++;
    if (!digits()) return 0;
  }
  if (i < s.size() && (s[i] == 'e' || s[i] == 'E')) {
    i++;
    if (i < s.size() && (s[i] == '+' || s[i] == '-')) i++;
    if (!digits()) return 0;
  }
  return i;
}

// Whether a JSON number is larger than every double. One that is nearer to 0 than every other double is just 0.
bool is_too_large(std::string_view number) {
  constexpr std::size_t kSurelySmall = 300;  // digits
  const std::size_t exponent_at = number.find_first_of("eE");
  if (exponent_at == number.npos && number.size() < kSurelySmall) return false;
  double value = 0;
  if (std::from_chars(number.data(), number.data() + number.size(), value).ec == std::errc{}) return false;
  // Out of range to one side or the other, which the power of ten of the first digit tells that is not 0.
  i64 power = 0, exponent = 0;
  bool behind_point = false, found = false;
  for (char c : number.substr(0, exponent_at)) {
    if (c == '.') behind_point = true;
    if (c < '0' || c > '9') continue;
    found |= c != '0';
    if (found != behind_point) power += found ? 1 : -1;
  }
  if (exponent_at != number.npos) {
    std::string_view text = number.substr(exponent_at + 1);
    if (text.starts_with('+')) text.remove_prefix(1);
    if (std::from_chars(text.data(), text.data() + text.size(), exponent).ec != std::errc{})
      return !text.starts_with('-');
  }
  return exponent > -power;
}

}  // namespace

HeaderJson::HeaderJson(std::string_view text, i64 base, int max_depth)
    : text_(text), base_(base), max_depth_(static_cast<std::size_t>(max_depth)) {
  check_json_text(text, base);
}

void HeaderJson::fail_at(std::size_t at, std::string message) const {
  throw_bad_json(std::move(message), base_ + static_cast<i64>(at));
}

JsonType HeaderJson::peek() {
  while (cursor_ < text_.size() && is_blank(text_[cursor_])) cursor_++;
  at_ = cursor_;
  if (cursor_ == text_.size()) fail("the JSON text ends too early");
  switch (char c = text_[cursor_]; c) {
    case '{':
      return JsonType::kObject;
    case '[':
      return JsonType::kArray;
    case '"':
      return JsonType::kString;
    case 't':
    case 'f':
      return JsonType::kBool;
    case 'n':
      return JsonType::kNull;
    default:
      if (c == '-' || is_digit(c)) return JsonType::kNumber;
      fail(cat("JSON syntax error at '", escaped({&c, 1}), "'"));
  }
}

char HeaderJson::first_byte(JsonType wanted) {
  if (JsonType found = peek(); found != wanted)
    fail(cat(json_type_name(wanted), " is expected in the JSON, not ", json_type_name(found)));
  return text_[cursor_];
}

void HeaderJson::open(JsonType type) {
  first_byte(type);
  cursor_++;
  if (first_.size() == max_depth_)
    fail(cat("the JSON is nested deeper than the limit of ", static_cast<i64>(max_depth_)));
  first_.push_back(true);
  if (type != JsonType::kObject) return;
  if (keys_.size() < first_.size()) keys_.resize(first_.size());
  keys_[first_.size() - 1].clear();
}

// Moves behind the comma to the next item, or behind the closing bracket.
bool HeaderJson::next(char closing, const char* what) {
  while (cursor_ < text_.size() && is_blank(text_[cursor_])) cursor_++;
  at_ = cursor_;
  if (cursor_ == text_.size()) fail(cat("the JSON text ends inside ", what));
  if (text_[cursor_] == closing) {
    cursor_++;
    first_.pop_back();
    return false;
  }
  if (!first_.back()) {
    if (text_[cursor_] != ',')
      fail(cat("JSON syntax error: a comma or '", closing, "' is expected in ", what));
    cursor_++;
  }
  first_.back() = false;
  return true;
}

void HeaderJson::begin_object() { open(JsonType::kObject); }
void HeaderJson::begin_array() { open(JsonType::kArray); }
bool HeaderJson::next_item() { return next(']', "an array"); }

bool HeaderJson::next_key(std::string_view& key) {
  if (!next('}', "an object")) return false;
  first_byte(JsonType::kString);
  std::size_t key_at = cursor_;
  key = scan_string();
  add_json_key(keys_[first_.size() - 1], key, base_ + static_cast<i64>(key_at));
  while (cursor_ < text_.size() && is_blank(text_[cursor_])) cursor_++;
  if (cursor_ == text_.size() || text_[cursor_] != ':')
    fail_at(cursor_, cat("JSON syntax error: ':' is expected behind the key '", escaped(key), "'"));
  cursor_++;
  return true;
}

std::string_view HeaderJson::string() {
  first_byte(JsonType::kString);
  return scan_string();
}

// pre: the cursor is at the opening quote.
std::string_view HeaderJson::scan_string() {
  std::size_t begin = ++cursor_, i = begin;
  while (true) {
    if (i + 8 <= text_.size()) {
      u64 special = special_bytes(load8(text_.data() + i));
      if (special == 0) {
        i += 8;
        continue;
      }
      if constexpr (std::endian::native == std::endian::little)
        i += static_cast<std::size_t>(std::countr_zero(special)) / 8;
    }
    if (i == text_.size()) fail_at(begin - 1, "the JSON text ends inside a string");
    unsigned char c = static_cast<unsigned char>(text_[i]);
    if (c == '"') {
      cursor_ = i + 1;
      return text_.substr(begin, i - begin);
    }
    if (c == '\\') {
      cursor_ = i;
      return unescape(begin);
    }
    if (c < 0x20) fail_at(i, "a control character stands bare in a JSON string");
    i++;
  }
}

// The rest of a string, from the first backslash at the cursor; its beginning is copied from `begin`.
std::string_view HeaderJson::unescape(std::size_t begin) {
  std::string& out = unescaped_.emplace_back(text_.substr(begin, cursor_ - begin));
  while (true) {
    if (cursor_ == text_.size()) fail_at(begin - 1, "the JSON text ends inside a string");
    char c = text_[cursor_];
    if (c == '"') {
      cursor_++;
      return out;
    }
    if (static_cast<unsigned char>(c) < 0x20)
      fail_at(cursor_, "a control character stands bare in a JSON string");
    if (c == '\\') {
      append_escape(out);
    } else {
      out += c;
      cursor_++;
    }
  }
}

void HeaderJson::append_escape(std::string& out) {
  static constexpr std::string_view kLetters = "\"\\/bfnrtu", kMeanings = "\"\\/\b\f\n\r\t";
  std::size_t at = cursor_++;
  char letter = cursor_ < text_.size() ? text_[cursor_++] : '\0';
  std::size_t kind = kLetters.find(letter);
  if (kind == std::string_view::npos) fail_at(at, "a JSON string has an unknown escape");
  if (kind < kMeanings.size()) {
    out += kMeanings[kind];
    return;
  }
  unsigned point = hex4();
  if (point >= 0xdc00 && point < 0xe000) fail_at(at, "a JSON string has a lone surrogate (not Unicode)");
  if (point >= 0xd800 && point < 0xdc00) {
    if (text_.substr(cursor_, 2) != "\\u") fail_at(at, "a JSON string has a lone surrogate (not Unicode)");
    cursor_ += 2;
    unsigned low = hex4();
    if (low < 0xdc00 || low >= 0xe000) fail_at(at, "a JSON string has a lone surrogate (not Unicode)");
    point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
  }
  auto continuation = [&](unsigned shift) { out += static_cast<char>(0x80 | ((point >> shift) & 0x3f)); };
  if (point < 0x80) {
    out += static_cast<char>(point);
  } else if (point < 0x800) {
    out += static_cast<char>(0xc0 | (point >> 6));
    continuation(0);
  } else if (point < 0x10000) {
    out += static_cast<char>(0xe0 | (point >> 12));
    continuation(6), continuation(0);
  } else {
    out += static_cast<char>(0xf0 | (point >> 18));
    continuation(12), continuation(6), continuation(0);
  }
}

unsigned HeaderJson::hex4() {
  unsigned v = 0;
  const char* begin = text_.data() + cursor_;
  const char* stop = begin + std::min<std::size_t>(4, text_.size() - cursor_);
  auto [end, ec] = std::from_chars(begin, stop, v, 16);
  if (ec != std::errc{} || end != begin + 4) fail_at(cursor_, "a JSON string has a broken \\u escape");
  cursor_ += 4;
  return v;
}

std::string_view HeaderJson::number() {
  first_byte(JsonType::kNumber);
  std::size_t length = number_length(text_.substr(cursor_));
  if (length == 0) fail("JSON syntax error in a number");
  const std::string_view number = text_.substr(cursor_, length);
  if (is_too_large(number)) fail(cat("the number ", escaped(number, 40), " is out of range (overflow)"));
  cursor_ += length;
  return number;
}

i64 HeaderJson::integer() {
  i64 value = 0;
  const std::string_view text = number();
  if (text == "-0") fail("an integer is expected, not -0, which is a float");
  if (std::string fault = json_integer_fault(text, value); !fault.empty()) fail(fault);
  return value;
}

void HeaderJson::word(std::string_view literal) {
  if (!text_.substr(cursor_).starts_with(literal)) fail("JSON syntax error");
  cursor_ += literal.size();
}

bool HeaderJson::boolean() {
  bool value = first_byte(JsonType::kBool) == 't';
  word(value ? "true" : "false");
  return value;
}

void HeaderJson::null() {
  first_byte(JsonType::kNull);
  word("null");
}

void HeaderJson::skip() {
  std::string_view key;
  switch (peek()) {
    case JsonType::kNull:
      return null();
    case JsonType::kBool:
      boolean();
      return;
    case JsonType::kNumber:
      number();
      return;
    case JsonType::kString:
      string();
      return;
    case JsonType::kArray:
      for (begin_array(); next_item();) skip();
      return;
    case JsonType::kObject:
      for (begin_object(); next_key(key);) skip();
      return;
  }
}

void HeaderJson::end() {
  while (cursor_ < text_.size() && is_blank(text_[cursor_])) cursor_++;
  if (cursor_ != text_.size()) fail_at(cursor_, "text follows the end of the JSON (trailing)");
  keys_ = {};
}

}  // namespace mckpt::impl
