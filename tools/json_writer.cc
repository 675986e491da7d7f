#include "tools/json_writer.h"

#include <cmath>

namespace mckpt {
void JsonWriter::separate() {
  if (after_key_) {
    after_key_ = false;
  } else if (!has_items_.empty()) {
    if (has_items_.back()) out_.write(", ");
    has_items_.back() = true;
  }
}

JsonWriter& JsonWriter::raw(std::string_view text) {
  separate();
  out_.write(text);
  return *this;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  out_.write({&bracket, 1});
  has_items_.push_back(false);
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  has_items_.pop_back();
  out_.write({&bracket, 1});
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  string(name);
  out_.write(": ");
  after_key_ = true;
  return *this;
}

void JsonWriter::string(std::string_view s) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  while (!s.empty()) {
    unsigned char b = static_cast<unsigned char>(s[0]);
    std::size_t n = 1;
    if (b == '"' || b == '\\') {
      out += {'\\', s[0]};
    } else if (b < 0x20 || b == 0x7f) {
      out += {'\\', 'u', '0', '0', kHex[b >> 4], kHex[b & 15]};
    } else if ((n = utf8_sequence(s)) != 0) {
      out += s.substr(0, n);
    } else {
      out += "\xef\xbf\xbd";
      n = 1;
    }
    s.remove_prefix(n);
  }
  out_.write(out += '"');
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  string(text);
  return *this;
}

JsonWriter& JsonWriter::value(i64 v) { return raw(cat(v)); }

JsonWriter& JsonWriter::value(double v) {
  if (std::isnan(v)) return value("NaN");
  if (std::isinf(v)) return value(v > 0 ? "Infinity" : "-Infinity");
  return raw(cat(v));
}

JsonWriter& JsonWriter::value(std::span<const i64> numbers) {
  begin_array();
  for (i64 n : numbers) value(n);
  return end_array();
}

JsonWriter& JsonWriter::begin_answer(std::string_view command, bool ok) {
  begin_object();
  field("schema", cat("mckpt.", command, "/1"));
  return field("ok", ok);
}

void JsonWriter::end_answer() {
  end_object();
  out_.write("\n");
}

}  // namespace mckpt
