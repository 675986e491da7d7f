// Reads typed entries. Messages give the wanted type and the found value, shortened; the wording ("is
// missing", "is zero", "is out of range") follows the key.
#include "hf/config/fields.h"
#include "core/base/error.h"
#include "io/json/json.h"

namespace mckpt::impl {

const JsonValue* ConfigFields::entry(std::string_view key) const {
  if (asked_) asked_->insert(this->key(key));
  const JsonValue* value = object_.find(key);
  return value || !defaults_ ? value : defaults_->find(key);
}

ConfigFields ConfigFields::with_defaults(std::string_view defaults) const {
  ConfigFields all = *this;
  all.defaults_ = std::make_shared<const JsonValue>(parse_json(defaults, JsonNumbers::kPython));
  return all;
}

ConfigFields ConfigFields::noting(Asked& asked) const {
  ConfigFields all = *this;
  all.asked_ = &asked;
  return all;
}

const JsonValue* ConfigFields::find(std::string_view key) const {
  const JsonValue* value = entry(key);
  return value && value->is(JsonType::kNull) ? nullptr : value;
}

bool ConfigFields::is_null(std::string_view key) const {
  const JsonValue* value = entry(key);
  return value && value->is(JsonType::kNull);
}

Error ConfigFields::error(std::string_view name, std::string_view what) const {
  return Error(Code::kBadConfig, cat("'", key(name), "' ", what));
}

Error ConfigFields::unsupported(std::string_view name, std::string_view what) const {
  return Error(Code::kUnsupportedModel, cat("'", key(name), "' ", what));
}

// An integer in [least, kLargest].
i64 ConfigFields::integer(std::string_view name, i64 least) const {
  const JsonValue* value = entry(name);
  if (!value) throw error(name, "is missing");
  if (!value->is_integer())
    throw error(name, "is of the wrong type").expected("an integer").found(value->summary());
  i64 n = 0;
  try {
    n = value->integer(key(name));
  } catch (const Error&) {
    throw error(name, "is out of range (overflow)")
        .expected(cat(least, " to ", kLargest))
        .found(value->summary());
  }
  if (n < least)
    throw error(name, n == 0 ? "is zero" : "is negative")
        .expected(least > 0 ? "a positive number" : "0 or more")
        .found(n);
  if (n > kLargest) throw error(name, "is out of range").expected(cat("at most ", kLargest)).found(n);
  return n;
}

i64 ConfigFields::size(std::string_view key) const { return integer(key, 1); }

bool ConfigFields::has_any(std::span<const std::string_view> keys) const {
  for (std::string_view k : keys)
    if (has(k)) return true;
  return false;
}

// If no key is present, the error names the first one.
i64 ConfigFields::size_of(std::span<const std::string_view> keys) const {
  std::string_view first;
  for (std::string_view k : keys) {
    if (!has(k)) continue;
    if (first.empty())
      first = k;
    else if (size(k) != size(first))
      throw error(k, cat("contradicts '", key(first), "'")).expected(size(first)).found(size(k));
  }
  return size(first.empty() ? keys[0] : first);
}

i64 ConfigFields::count_or(std::string_view key, i64 fallback) const {
  return has(key) ? integer(key, 0) : fallback;
}

bool ConfigFields::flag_or(std::string_view key, bool fallback) const {
  const JsonValue* value = find(key);
  if (!value) return fallback;
  if (!value->is(JsonType::kBool))
    throw error(key, "is of the wrong type").expected("true or false").found(value->summary());
  return value->boolean(key);
}

double ConfigFields::real_or(std::string_view key, double fallback) const {
  const JsonValue* value = find(key);
  if (!value) return fallback;
  if (!value->is(JsonType::kNumber))
    throw error(key, "is of the wrong type").expected("a number").found(value->summary());
  return value->real(key);
}

std::string ConfigFields::text_or(std::string_view key, std::string_view fallback) const {
  const JsonValue* value = find(key);
  if (!value) return std::string(fallback);
  if (!value->is(JsonType::kString))
    throw error(key, "is of the wrong type").expected("a string").found(value->summary());
  return value->string(key);
}

std::vector<std::string> ConfigFields::texts(std::string_view key) const {
  const JsonValue* value = find(key);
  if (!value) throw error(key, "is missing");
  if (!value->is(JsonType::kArray))
    throw error(key, "is of the wrong type").expected("a list of strings").found(value->summary());
  std::vector<std::string> out;
  for (const JsonValue& item : value->array(key)) {
    if (!item.is(JsonType::kString))
      throw error(key, "is of the wrong type").expected("a list of strings").found(item.summary());
    out.push_back(item.string(key));
  }
  return out;
}

std::vector<i64> ConfigFields::numbers_or_none(std::string_view key) const {
  const JsonValue* value = find(key);
  if (!value) return {};
  if (!value->is(JsonType::kArray))
    throw error(key, "is of the wrong type").expected("a list of integers").found(value->summary());
  std::vector<i64> out;
  for (const JsonValue& item : value->array(key)) {
    if (!item.is_integer())
      throw error(key, "is of the wrong type").expected("a list of integers").found(item.summary());
    out.push_back(item.integer(key));
  }
  return out;
}

ConfigFields ConfigFields::object(std::string_view key) const {
  const JsonValue* value = find(key);
  if (!value) throw error(key, "is missing");
  if (!value->is(JsonType::kObject))
    throw error(key, "is of the wrong type").expected("an object").found(value->summary());
  ConfigFields inside(*value, cat(prefix_, key, "."));
  inside.asked_ = asked_;
  return inside;
}

}  // namespace mckpt::impl
