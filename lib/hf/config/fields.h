// ConfigFields: the entries of one object of a config.json, read with their types and limits. Every error
// names the whole key:
//
//   {"text_config": {"hidden_size": 0}}     object("text_config").size("hidden_size")
//                                           -->  kBadConfig: 'text_config.hidden_size' is zero
//
// An entry that is null counts as absent.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "core/base/text.h"

namespace mckpt::impl {

class Error;
class JsonValue;

// A view of one JSON object, with the keys that lead to it. The object outlives the view. Every reading
// function throws kBadConfig for an entry of the wrong type or out of range.
class ConfigFields {
 public:
  // The largest number that is accepted. Numbers of real models are far below, and products of two fit 63
  // bits.
  static constexpr i64 kLargest = (i64{1} << 28) - 1;

  // pre: `object` is a JSON object and outlives this.
  ConfigFields(const JsonValue& object, std::string prefix) : object_(object), prefix_(std::move(prefix)) {}

  bool has(std::string_view key) const { return find(key) != nullptr; }
  // Whether the entry is an explicit null, which has() takes for a missing one.
  bool is_null(std::string_view key) const;
  // The entry; a null pointer if it is absent or null.
  const JsonValue* find(std::string_view key) const;

  // A positive number. Throws kBadConfig also if the entry is absent.
  i64 size(std::string_view key) const;
  i64 size_or(std::string_view key, i64 fallback) const { return has(key) ? size(key) : fallback; }
  // The number under the first of several spellings that is present. All that are present must agree.
  i64 size_of(std::span<const std::string_view> keys) const;
  i64 size_of(std::initializer_list<std::string_view> keys) const {
    return size_of(std::span(keys.begin(), keys.size()));
  }
  bool has_any(std::span<const std::string_view> keys) const;
  bool has_any(std::initializer_list<std::string_view> keys) const {
    return has_any(std::span(keys.begin(), keys.size()));
  }
  // A number of 0 or more; `fallback` if the entry is absent.
  i64 count_or(std::string_view key, i64 fallback) const;
  // The same, but an explicit null is 0: transformers takes its default for an absent entry alone.
  i64 count_unless_null(std::string_view key, i64 fallback) const {
    return is_null(key) ? 0 : count_or(key, fallback);
  }
  bool flag_or(std::string_view key, bool fallback) const;
  // Any number, also one with a fraction.
  double real_or(std::string_view key, double fallback) const;
  std::string text_or(std::string_view key, std::string_view fallback) const;
  std::vector<std::string> texts(std::string_view key) const;
  std::vector<i64> numbers_or_none(std::string_view key) const;
  // An entry that is an object. Throws kBadConfig if it is absent or not an object.
  ConfigFields object(std::string_view key) const;
  // This object with the entries of `defaults`, a JSON object, where it has none of that name:
  // transformers writes the parts of a multimodal config without what is the default of their class.
  ConfigFields with_defaults(std::string_view defaults) const;

  // Returns this object as one that adds to `asked` the whole keys that are asked for, also the keys of
  // objects in it.
  using Asked = std::set<std::string, std::less<>>;
  ConfigFields noting(Asked& asked) const;

  std::string key(std::string_view name) const { return cat(prefix_, name); }
  // An error about an entry, with the code kBadConfig; the reader of the file adds the file's name.
  Error error(std::string_view name, std::string_view what) const;
  // An error about an entry, with the code kUnsupportedModel.
  Error unsupported(std::string_view name, std::string_view what) const;

 private:
  i64 integer(std::string_view key, i64 least) const;
  const JsonValue* entry(std::string_view key) const;  // also null

  const JsonValue& object_;
  std::string prefix_;
  std::shared_ptr<const JsonValue> defaults_;
  Asked* asked_ = nullptr;
};

}  // namespace mckpt::impl
