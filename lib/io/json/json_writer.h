// JsonWriter appends a JSON document to a text, value by value. It keeps nothing but the nesting, so a
// listing of any length can be sent on while it is written: `relieve` may take the text away whenever it has
// grown to 64 KiB.
//
//     std::string text;
//     JsonWriter json(text);
//     json.begin_object().field("tensors", 3).end_object();    // {"tensors": 3}
//
// Strings from files may hold any bytes; bytes that are not UTF-8 are written as U+FFFD.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class JsonWriter {
 public:
  // `out` outlives this, and so does what `relieve` refers to.
  explicit JsonWriter(std::string& out, std::function<void()> relieve = {})
      : out_(out), relieve_(std::move(relieve)) {}

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
  // A number or a word that is already JSON.
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

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& raw(std::string_view text);
  void separate();
  void string(std::string_view text);

  static constexpr std::size_t kRelievedBytes = 1 << 16;

  std::string& out_;
  std::function<void()> relieve_;
  std::vector<bool> has_items_;  // one per open bracket
  bool after_key_ = false;
};

}  // namespace mckpt::impl
