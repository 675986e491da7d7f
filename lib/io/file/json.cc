#include "io/file/json.h"

#include <bit>
#include <charconv>
#include <cstring>

#include "core/base/error.h"
#include "core/base/name_hash.h"

namespace mckpt::impl {
namespace {

constexpr u64 kOnes = 0x0101010101010101;
constexpr u64 kHighs = 0x8080808080808080;
// As many keys as are compared one by one before a hash table is worth building.
constexpr std::size_t kFewKeys = 8;

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

}  // namespace

bool json_integer_spelling(std::string_view number) {
  return number.find_first_not_of("-0123456789") == std::string_view::npos;
}

std::string json_integer_fault(std::string_view number, i64& value) {
  if (!json_integer_spelling(number)) return cat("an integer is expected, not ", escaped(number, 40));
  auto [end, ec] = std::from_chars(number.data(), number.data() + number.size(), value);
  return ec == std::errc{} ? ""
                           : cat("the integer ", escaped(number, 40), " does not fit 63 bits (overflow)");
}

std::string_view json_type_name(JsonType type) {
  static constexpr std::string_view kNames[] = {"null",     "a boolean", "a number",
                                                "a string", "an array",  "an object"};
  return kNames[static_cast<std::size_t>(type)];
}

JsonReader::JsonReader(std::string_view text, int max_depth, i64 base, JsonNumbers numbers)
    : text_(text),
      base_(base),
      max_depth_(static_cast<std::size_t>(max_depth)),
      non_finite_(numbers == JsonNumbers::kPython) {
  if (text.starts_with("\xef\xbb\xbf")) fail("the JSON begins with a byte order mark (BOM)");
  check_utf8();
}

void JsonReader::fail_at(std::size_t at, std::string message) const {
  throw Error(Code::kBadJson, std::move(message)).offset(base_ + static_cast<i64>(at));
}

void JsonReader::check_utf8() const {
  std::size_t i = 0;
  while (i < text_.size()) {
    if (i + 8 <= text_.size() && (load8(text_.data() + i) & kHighs) == 0) {
      i += 8;
      continue;
    }
    std::size_t n = utf8_sequence(text_.substr(i, 4));
    if (n == 0) fail_at(i, "the JSON text is not UTF-8");
    i += n;
  }
}

JsonType JsonReader::peek() {
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
      if (c == '-' || is_digit(c) || (non_finite_ && (c == 'N' || c == 'I'))) return JsonType::kNumber;
      fail(cat("JSON syntax error at '", escaped({&c, 1}), "'"));
  }
}

char JsonReader::first_byte(JsonType wanted) {
  if (JsonType found = peek(); found != wanted)
    fail(cat(json_type_name(wanted), " is expected in the JSON, not ", json_type_name(found)));
  return text_[cursor_];
}

void JsonReader::open(JsonType type) {
  first_byte(type);
  cursor_++;
  if (first_.size() == max_depth_)
    fail(cat("the JSON is nested deeper than the limit of ", static_cast<i64>(max_depth_)));
  first_.push_back(true);
  if (type != JsonType::kObject) return;
  if (keys_.size() < first_.size()) keys_.resize(first_.size());
  keys_[first_.size() - 1].names.clear();
  keys_[first_.size() - 1].slots.clear();
}

// Moves behind the comma to the next item, or behind the closing bracket.
bool JsonReader::next(char closing, const char* what) {
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

void JsonReader::begin_object() { open(JsonType::kObject); }
void JsonReader::begin_array() { open(JsonType::kArray); }
bool JsonReader::next_item() { return next(']', "an array"); }

bool JsonReader::next_key(std::string_view& key) {
  if (!next('}', "an object")) return false;
  first_byte(JsonType::kString);
  std::size_t key_at = cursor_;
  key = scan_string();
  if (key.size() > kMaxKeyBytes)
    fail_at(key_at, cat("a key of ", static_cast<i64>(key.size()), " bytes is over the limit of ",
                        static_cast<i64>(kMaxKeyBytes)));
  note_key(key, key_at);
  while (cursor_ < text_.size() && is_blank(text_[cursor_])) cursor_++;
  if (cursor_ == text_.size() || text_[cursor_] != ':')
    fail_at(cursor_, cat("JSON syntax error: ':' is expected behind the key '", escaped(key), "'"));
  cursor_++;
  return true;
}

void JsonReader::note_key(std::string_view key, std::size_t at) {
  Keys& keys = keys_[first_.size() - 1];
  keys.names.push_back(key);
  if (keys.names.size() <= kFewKeys) {
    for (std::size_t i = 0; i + 1 < keys.names.size(); i++)
      if (keys.names[i] == key) fail_at(at, cat("the key '", escaped(key), "' stands twice (duplicate)"));
    return;
  }
  if (keys.slots.size() < keys.names.size() * 2) {
    keys.slots.assign(std::bit_ceil(keys.names.size() * 4), 0);
    for (u32 i = 0; i + 1 < keys.names.size(); i++) insert_key(keys, i, at);
  }
  insert_key(keys, static_cast<u32>(keys.names.size() - 1), at);
}

void JsonReader::insert_key(Keys& keys, u32 index, std::size_t at) {
  std::string_view key = keys.names[index];
  std::size_t mask = keys.slots.size() - 1;
  for (std::size_t slot = NameHash()(key) & mask;; slot = (slot + 1) & mask) {
    if (keys.slots[slot] == 0) {
      keys.slots[slot] = index + 1;
      return;
    }
    if (keys.names[keys.slots[slot] - 1] == key)
      fail_at(at, cat("the key '", escaped(key), "' stands twice (duplicate)"));
  }
}

std::string_view JsonReader::string() {
  first_byte(JsonType::kString);
  return scan_string();
}

// pre: the cursor is at the opening quote.
std::string_view JsonReader::scan_string() {
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
std::string_view JsonReader::unescape(std::size_t begin) {
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

void JsonReader::append_escape(std::string& out) {
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

unsigned JsonReader::hex4() {
  unsigned v = 0;
  const char* begin = text_.data() + cursor_;
  const char* stop = begin + std::min<std::size_t>(4, text_.size() - cursor_);
  auto [end, ec] = std::from_chars(begin, stop, v, 16);
  if (ec != std::errc{} || end != begin + 4) fail_at(cursor_, "a JSON string has a broken \\u escape");
  cursor_ += 4;
  return v;
}

std::size_t JsonReader::number_bytes() const {
  std::string_view rest = text_.substr(cursor_);
  if (non_finite_)
    for (std::string_view word : {"NaN", "Infinity", "-Infinity"})
      if (rest.starts_with(word)) return word.size();
  return number_length(rest);
}

std::string_view JsonReader::number() {
  first_byte(JsonType::kNumber);
  std::size_t length = number_bytes();
  if (length == 0) fail("JSON syntax error in a number");
  cursor_ += length;
  return text_.substr(at_, length);
}

i64 JsonReader::integer() {
  i64 value = 0;
  if (std::string fault = json_integer_fault(number(), value); !fault.empty()) fail(fault);
  return value;
}

void JsonReader::word(std::string_view literal) {
  if (!text_.substr(cursor_).starts_with(literal)) fail("JSON syntax error");
  cursor_ += literal.size();
}

bool JsonReader::boolean() {
  bool value = first_byte(JsonType::kBool) == 't';
  word(value ? "true" : "false");
  return value;
}

void JsonReader::null() {
  first_byte(JsonType::kNull);
  word("null");
}

void JsonReader::skip() {
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

void JsonReader::end() {
  while (cursor_ < text_.size() && is_blank(text_[cursor_])) cursor_++;
  if (cursor_ != text_.size()) fail_at(cursor_, "text follows the end of the JSON (trailing)");
  keys_ = {};
}

}  // namespace mckpt::impl
