// Walks both trees side by side. Lists of two lengths differ as a whole.
#include "convert/compare/differences/json_values.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "core/base/text.h"
#include "io/json/json.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kMostShown = 80;

// Appends the value until the text is longer than what is shown.
void append(std::string& out, const JsonValue& v) {
  if (out.size() > kMostShown) return;
  switch (v.type()) {
    case JsonType::kNull:
      out += "null";
      return;
    case JsonType::kBool:
      out += v.boolean("") ? "true" : "false";
      return;
    case JsonType::kNumber:
      out += v.number("");
      return;
    case JsonType::kString:
      append_json_string(out, std::string_view(v.string("")).substr(0, 4 * kMostShown));
      return;
    case JsonType::kArray:
      out += '[';
      for (const JsonValue& item : v.array("")) {
        if (&item != v.array("").data()) out += ", ";
        append(out, item);
      }
      out += ']';
      return;
    case JsonType::kObject:
      out += '{';
      for (const JsonMember& m : v.object("")) {
        if (&m != v.object("").data()) out += ", ";
        append_json_string(out, m.name);
        out += ": ";
        append(out, m.value);
      }
      out += '}';
  }
}

std::string shown(const JsonValue& v) {
  std::string out;
  append(out, v);
  if (out.size() <= kMostShown) return out;
  std::size_t end = kMostShown;
  while (end > 0 && (static_cast<u8>(out[end]) & 0xC0) == 0x80) end--;  // no half of a character
  return cat(out.substr(0, end), "...");
}

std::string place_of(std::string_view key) {
  auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (!key.empty() && std::ranges::all_of(key, plain)) return cat(".", key);
  std::string out = "[";
  append_json_string(out, key);
  return out + "]";
}

std::optional<double> as_double(const std::string& text) {
  double value = 0;
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// 1 and 1.0 are two types of Python; 1e-6 and 0.000001 are one value.
bool same_number(const JsonValue& a, const JsonValue& b) {
  const std::string &x = a.number(""), &y = b.number("");
  if (x == y) return true;
  if (a.is_integer() || b.is_integer()) return false;
  const std::optional<double> one = as_double(x), other = as_double(y);
  return one && other && *one == *other;
}

class Walk {
 public:
  explicit Walk(i64 most) : most_(most) {}

  void compare(const std::string& at, const JsonValue& a, const JsonValue& b) {
    if (a.type() != b.type()) return add(at, &a, &b);
    switch (a.type()) {
      case JsonType::kNull:
        return;
      case JsonType::kBool:
        if (a.boolean("") != b.boolean("")) add(at, &a, &b);
        return;
      case JsonType::kNumber:
        if (!same_number(a, b)) add(at, &a, &b);
        return;
      case JsonType::kString:
        if (a.string("") != b.string("")) add(at, &a, &b);
        return;
      case JsonType::kArray:
        return arrays(at, a, b);
      case JsonType::kObject:
        return objects(at, a, b);
    }
  }
  JsonDifferences take() { return std::move(out_); }

 private:
  void arrays(const std::string& at, const JsonValue& a, const JsonValue& b) {
    const JsonValue::Array &x = a.array(""), &y = b.array("");
    if (x.size() != y.size()) return add(at, &a, &b);
    for (std::size_t i = 0; i < x.size(); i++) compare(cat(at, "[", i, "]"), x[i], y[i]);
  }

  void objects(const std::string& at, const JsonValue& a, const JsonValue& b) {
    std::map<std::string_view, const JsonValue*> rest;  // of b
    for (const JsonMember& m : b.object("")) rest.emplace(m.name, &m.value);
    for (const JsonMember& m : a.object("")) {
      auto other = rest.find(m.name);
      const std::string place = at + place_of(m.name);
      if (other == rest.end())
        add(place, &m.value, nullptr);
      else
        compare(place, m.value, *other->second), rest.erase(other);
    }
    for (const JsonMember& m : b.object(""))
      if (rest.contains(m.name)) add(at + place_of(m.name), nullptr, &m.value);
  }

  void add(const std::string& at, const JsonValue* a, const JsonValue* b) {
    if (out_.count++ >= most_) return;
    JsonDifference d{at, a ? shown(*a) : "", b ? shown(*b) : ""};
    auto sized = [](const JsonValue& v) {
      return v.is(JsonType::kArray) ? cat("a list of ", v.array("").size())
             : v.is(JsonType::kObject)
                 ? cat("an object of ", v.object("").size())
                 : cat("a text of ", v.is(JsonType::kString) ? v.string("").size() : 0, " bytes");
    };
    // Long values that begin alike
    if (a && b && d.a == d.b) d.a = cat(sized(*a), ": ", d.a), d.b = cat(sized(*b), ": ", d.b);
    out_.first.push_back(std::move(d));
  }

  i64 most_;
  JsonDifferences out_;
};

}  // namespace

JsonDifferences json_differences(const JsonValue& a, const JsonValue& b, i64 most) {
  Walk walk(most);
  walk.compare("", a, b);
  return walk.take();
}

}  // namespace mckpt::impl
