// The values of a JSON tree, and the writing of strings.
#include <algorithm>
#include <charconv>

#include "core/base/error.h"
#include "io/json/json.h"
#include "io/json/json_keys.h"

namespace mckpt::impl {

std::string_view json_type_name(JsonType type) {
  static constexpr std::string_view kNames[] = {"null",     "a boolean", "a number",
                                                "a string", "an array",  "an object"};
  return kNames[static_cast<std::size_t>(type)];
}

bool JsonValue::is_integer() const {
  const Number* n = std::get_if<Number>(&data_);
  return n && json_integer_spelling(n->text);
}

const JsonValue* JsonValue::find(std::string_view key) const {
  if (const Object* members = std::get_if<Object>(&data_))
    for (const JsonMember& m : *members)
      if (m.name == key) return &m.value;
  return nullptr;
}

template <typename T>
const T& JsonValue::get(std::string_view what, JsonType wanted) const {
  if (const T* v = std::get_if<T>(&data_)) return *v;
  throw Error(Code::kBadJson, cat(escaped(what), " has the wrong type"))
      .expected(json_type_name(wanted))
      .found(summary());
}

bool JsonValue::boolean(std::string_view what) const { return get<bool>(what, JsonType::kBool); }
const std::string& JsonValue::number(std::string_view what) const {
  return get<Number>(what, JsonType::kNumber).text;
}
const std::string& JsonValue::string(std::string_view what) const {
  return get<std::string>(what, JsonType::kString);
}
const JsonValue::Array& JsonValue::array(std::string_view what) const {
  return get<Array>(what, JsonType::kArray);
}
const JsonValue::Object& JsonValue::object(std::string_view what) const {
  return get<Object>(what, JsonType::kObject);
}

i64 JsonValue::integer(std::string_view what) const {
  const Number* n = std::get_if<Number>(&data_);
  if (!n)
    throw Error(Code::kBadJson, cat(escaped(what), " has the wrong type"))
        .expected("an integer")
        .found(summary());
  i64 value = 0;
  if (std::string fault = json_integer_fault(n->text, value); !fault.empty())
    throw Error(Code::kBadJson, cat(escaped(what), ": ", fault));
  return value;
}

double JsonValue::real(std::string_view what) const {
  const std::string& text = number(what);
  double value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc{})
    throw Error(Code::kBadJson, cat(escaped(what), " is out of range")).found(escaped(text, 40));
  return value;
}

std::string JsonValue::summary() const {
  if (const Number* n = std::get_if<Number>(&data_)) return escaped(n->text, 40);
  if (const bool* b = std::get_if<bool>(&data_)) return cat(*b);
  return std::string(json_type_name(type()));
}

bool is_utf8(std::string_view s) {
  while (!s.empty()) {
    std::size_t n = utf8_sequence(s);
    if (n == 0) return false;
    s.remove_prefix(n);
  }
  return true;
}

void append_json_string(std::string& out, std::string_view s) {
  static constexpr char kHex[] = "0123456789abcdef";
  static constexpr std::string_view kShort = "\b\t\n\f\r";
  auto plain = [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; };
  out += '"';
  while (!s.empty()) {
    std::size_t n = 0;
    while (n < s.size() && plain(s[n])) n++;
    if (n == 0) {
      unsigned char b = static_cast<unsigned char>(s[0]);
      n = utf8_sequence(s);
      if (n > 1) {
        out += s.substr(0, n);
      } else if (n == 0) {
        out += "\xef\xbf\xbd";
      } else if (b == '"' || b == '\\') {
        out += {'\\', s[0]};
      } else if (std::size_t letter = kShort.find(s[0]); letter != kShort.npos) {
        out += {'\\', "btnfr"[letter]};
      } else {
        out += {'\\', 'u', '0', '0', kHex[b >> 4], kHex[b & 15]};
      }
      n = std::max<std::size_t>(n, 1);
    } else {
      out += s.substr(0, n);
    }
    s.remove_prefix(n);
  }
  out += '"';
}

}  // namespace mckpt::impl
