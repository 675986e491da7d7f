// What JsonWriter appends: separators by the nesting, numbers in their shortest form, and strings that
// neither a JSON reader nor a terminal misunderstands.
#include "io/json/json_writer.h"

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "io/json/json.h"

namespace mckpt::impl {
void JsonWriter::separate() {
  if (relieve_ && out_.size() >= kRelievedBytes) relieve_();
  if (after_key_) {
    after_key_ = false;
  } else if (!has_items_.empty()) {
    if (has_items_.back()) out_ += ", ";
    has_items_.back() = true;
  }
}

JsonWriter& JsonWriter::raw(std::string_view text) {
  separate();
  out_ += text;
  return *this;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  out_ += bracket;
  has_items_.push_back(false);
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  has_items_.pop_back();
  out_ += bracket;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  string(name);
  out_ += ": ";
  after_key_ = true;
  return *this;
}

namespace {

// Escapes what is from `begin` on: terminals obey the controls U+0080 to U+009F, and the controls of the
// writing direction hide text.
void escape_for_terminals(std::string& json, std::size_t begin) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(json[i]); };
  for (std::size_t i = begin; i + 1 < json.size(); i++) {
    u32 code = 0;
    if (byte(i) == 0xc2 && byte(i + 1) < 0xa0) code = byte(i + 1);
    if (byte(i) == 0xe2 && i + 2 < json.size() && (byte(i + 1) == 0x80 || byte(i + 1) == 0x81))
      code = 0x2000u | (byte(i + 1) & 1u) << 6 | (byte(i + 2) & 0x3fu);
    bool direction = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    if ((code < 0x80 || code > 0x9f) && !direction) continue;
    constexpr char kDigits[] = "0123456789abcdef";
    std::string text = "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) text += kDigits[code >> shift & 15];
    json.replace(i, direction ? 3 : 2, text);
  }
}

}  // namespace

void JsonWriter::string(std::string_view s) {
  std::size_t begin = out_.size();
  append_json_string(out_, s);
  if (std::ranges::any_of(s, [](char c) { return c == '\xc2' || c == '\xe2'; }))
    escape_for_terminals(out_, begin);
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  string(text);
  return *this;
}

JsonWriter& JsonWriter::value(i64 v) { return raw(cat(v)); }

JsonWriter& JsonWriter::value(u64 v) { return raw(cat(v)); }

JsonWriter& JsonWriter::value(double v) {
  if (std::isnan(v)) return value("NaN");
  if (std::isinf(v)) return value(v > 0 ? "Infinity" : "-Infinity");
  // Readers take "-0" for an integer, which does not have a sign.
  return v == 0 && std::signbit(v) ? raw("-0.0") : raw(cat(v));
}

JsonWriter& JsonWriter::value(std::span<const i64> numbers) {
  begin_array();
  for (i64 n : numbers) value(n);
  return end_array();
}

}  // namespace mckpt::impl
