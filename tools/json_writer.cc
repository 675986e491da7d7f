#include "tools/json_writer.h"

#include <cmath>

#include "io/json.h"

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
  std::string out;
  append_json_string(out, s);
  out_.write(out);
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
  // Readers take -0 for an integer, which has no sign.
  return v == 0 && std::signbit(v) ? raw("-0.0") : raw(cat(v));
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
