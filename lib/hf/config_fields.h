// The entries of one object of a config.json, read with their types and limits; every error names the file
// and the whole key ("text_config.hidden_size"). An entry that is null counts as absent.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "core/base/text.h"

namespace mckpt::impl {

class Error;
class JsonValue;

class ConfigFields {
 public:
  // Numbers of real models are far below; products of two fit 63 bits.
  static constexpr i64 kLargest = (i64{1} << 28) - 1;

  // pre: `object` is a JSON object and outlives this.
  ConfigFields(const JsonValue& object, std::string prefix) : object_(object), prefix_(std::move(prefix)) {}

  bool has(std::string_view key) const { return find(key) != nullptr; }
  // The member, or null where it is absent or null.
  const JsonValue* find(std::string_view key) const;

  // A positive number. Throws kBadConfig.
  i64 size(std::string_view key) const;
  i64 size_or(std::string_view key, i64 fallback) const { return has(key) ? size(key) : fallback; }
  // The first of several spellings that is there. Where two are there they must agree.
  i64 size_of(std::initializer_list<std::string_view> keys) const;
  bool has_any(std::initializer_list<std::string_view> keys) const;
  // As size(), but zero is allowed.
  i64 count_or(std::string_view key, i64 fallback) const;
  bool flag_or(std::string_view key, bool fallback) const;
  std::string text_or(std::string_view key, std::string_view fallback) const;
  std::vector<std::string> texts(std::string_view key) const;
  std::vector<i64> numbers_or_none(std::string_view key) const;
  // A member that is an object. Throws kBadConfig when it is absent or no object.
  ConfigFields object(std::string_view key) const;

  std::string key(std::string_view name) const { return cat(prefix_, name); }
  // An error about an entry; the reader of the file adds the file's name.
  Error error(std::string_view name, std::string_view what) const;
  // The same with the code kUnsupportedModel.
  Error unsupported(std::string_view name, std::string_view what) const;

 private:
  i64 integer(std::string_view key, i64 least) const;

  const JsonValue& object_;
  std::string prefix_;
};

}  // namespace mckpt::impl
