// The text that JsonWriter appends: separators by the nesting, numbers in their shortest form, and strings
// that neither a JSON reader nor a terminal misunderstands.
#include "io/json/json_writer.h"

#include <algorithm>
#include <cmath>

#include "core/base/hidden_chars.h"
#include "core/base/int.h"
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

// pre: a well-formed sequence of several bytes.
u32 code_point(std::string_view sequence) {
  u32 code = static_cast<unsigned char>(sequence[0]) & (0x7fu >> sequence.size());
  for (const char c : sequence.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3fu);
  return code;
}

// Escapes what is from `begin` on: terminals obey the controls U+0080 to U+009F, and hidden characters make names look
// alike. Above U+FFFF an escape is two surrogates.
void escape_for_terminals(std::string& json, std::size_t begin) {
  std::string out;
  auto add = [&](u32 unit) {
    constexpr char kDigits[] = "0123456789abcdef";
    out += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) out += kDigits[unit >> shift & 15];
  };
  for (std::string_view left = std::string_view(json).substr(begin); !left.empty();) {
    const std::size_t n = std::max<std::size_t>(utf8_sequence(left), 1);
    const u32 code = n == 1 ? 0 : code_point(left.substr(0, n));
    if (code < 0x80 || (code > 0x9f && !is_hidden_char(code)))
      out += left.substr(0, n);
    else if (code < 0x10000)
      add(code);
    else
      add(0xd7c0 + (code >> 10)), add(0xdc00 + (code & 0x3ff));
    left.remove_prefix(n);
  }
  json.replace(begin, json.npos, out);
}

}  // namespace

void JsonWriter::string(std::string_view s) {
  std::size_t begin = out_.size();
  append_json_string(out_, s);
  if (std::ranges::any_of(s, [](char c) { return static_cast<unsigned char>(c) >= 0x80; }))
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
