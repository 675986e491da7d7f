// JSON documents as trees: UTF-8 without a byte order mark, the whole input, no key twice in an object
// (compared after unescaping), bounded depth, numbers that keep their spelling. The grammar is
// nlohmann/json's, whose events json.cc makes into the tree. A safetensors header is read by
// io/safetensors/header_json.h.
//
// Everything throws kBadJson with the byte.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

inline constexpr int kMaxJsonDepth = 64;

enum class JsonType : u8 { kNull, kBool, kNumber, kString, kArray, kObject };
std::string_view json_type_name(JsonType type);  // "a number"

// The spellings of numbers: kPython takes NaN, Infinity and -Infinity too, which Python's json module writes
// (Hugging Face configs have them).
enum class JsonNumbers : u8 { kStrict, kPython };

struct JsonMember;

class JsonValue {
 public:
  // A number keeps its spelling: no 2^64 becomes a double on the way.
  struct Number {
    std::string text;
  };
  using Array = std::vector<JsonValue>;
  using Object = std::vector<JsonMember>;  // in the order of the text
  using Data = std::variant<std::nullptr_t, bool, Number, std::string, Array, Object>;

  JsonValue() = default;
  explicit JsonValue(Data data);

  JsonType type() const { return static_cast<JsonType>(data_.index()); }
  bool is(JsonType t) const { return type() == t; }
  bool is_integer() const;  // a number without fraction and exponent

  // The member of an object, or null when there is none or this is not an object.
  const JsonValue* find(std::string_view key) const;

  // The value as a type; throws kBadJson that names `what` ("hidden_size") when it is another.
  bool boolean(std::string_view what) const;
  i64 integer(std::string_view what) const;
  double real(std::string_view what) const;
  const std::string& number(std::string_view what) const;  // as it is written
  const std::string& string(std::string_view what) const;
  const Array& array(std::string_view what) const;
  const Object& object(std::string_view what) const;

  std::string summary() const;  // for messages: "a string", "8.5", "true"

 private:
  template <typename T>
  const T& get(std::string_view what, JsonType wanted) const;

  Data data_;
};

struct JsonMember {
  std::string name;
  JsonValue value;
};

// Behind JsonMember, which makes the variant complete.
inline JsonValue::JsonValue(Data data) : data_(std::move(data)) {}

// A tree takes 40 bytes for a value and 72 for a member. The config with the most values known is one that lists how
// each expert is quantised: 69,000 modules with three values each.
inline constexpr i64 kMostConfigValues = 1 << 18;

JsonValue parse_json(std::string_view text, JsonNumbers numbers = JsonNumbers::kStrict);
// A config of a model or an adapter. Throws also for more than kMostConfigValues values.
JsonValue parse_config(std::string_view text, JsonNumbers numbers = JsonNumbers::kPython);
// Judges a document without keeping its values. Returns what it is as a whole.
JsonType check_json(std::string_view text, JsonNumbers numbers = JsonNumbers::kStrict);

// An item of a long list, or a member of a long object.
struct JsonListed {
  std::string name;  // of a member
  JsonValue value;
  i64 offset = 0;  // where the value begins
};

// Reads a document that is mostly one long list (an array or an object): the member `list` of the document.
// Its parts are given to `take` one by one, and not kept. Returns the rest, with an empty list.
JsonValue parse_json_list(std::string_view text, std::string_view list,
                          const std::function<void(JsonListed)>& take);

bool is_utf8(std::string_view text);

// Appends the text as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);

}  // namespace mckpt::impl
