// JSON, streamed: what is written goes to stdout at once and nothing is kept but the nesting. Strings from
// files may hold any bytes; those that are not UTF-8 are written as U+FFFD.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "tools/render/output.h"

namespace mckpt {

class JsonWriter {
 public:
  explicit JsonWriter(Output& out) : out_(out) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool v) { return raw(v ? "true" : "false"); }
  JsonWriter& value(i64 v);
  JsonWriter& value(u64 v);
  JsonWriter& value(int v) { return value(static_cast<i64>(v)); }
  JsonWriter& value(double v);  // NaN and the infinities become the strings "NaN", "Infinity" and "-Infinity"
  JsonWriter& null() { return raw("null"); }
  // A number or a word that is JSON as it is.
  JsonWriter& literal(std::string_view text) { return raw(text); }
  template <typename T>
  JsonWriter& value(const std::optional<T>& v) {
    return v ? value(*v) : null();
  }
  JsonWriter& value(std::span<const i64> numbers);

  template <typename T>
  JsonWriter& field(std::string_view name, const T& v) {
    key(name);
    return value(v);
  }
  JsonWriter& null_field(std::string_view name) { return key(name).null(); }

  // The beginning of every answer: {"schema": "mckpt.<command>/1", "ok": ...
  JsonWriter& begin_answer(std::string_view command, bool ok);
  // Ends the answer with a newline. pre: everything inside is closed.
  void end_answer();

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& raw(std::string_view text);
  void separate();
  void string(std::string_view text);

  Output& out_;
  std::vector<bool> has_items_;  // one per open bracket
  bool after_key_ = false;
};

}  // namespace mckpt
