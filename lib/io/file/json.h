// JSON, strictly: UTF-8 without a byte order mark, the whole input, no key twice in an object (compared after
// unescaping), bounded depth, integers that stay integers. The one JSON parser of the program.
//
// JsonReader walks the text from front to back and builds nothing; its caller asks for what it expects:
//
//   JsonReader json(text);
//   std::string_view key;
//   for (json.begin_object(); json.next_key(key);)
//     key == "size" ? size = json.integer() : json.skip();
//   json.end();
//
// parse_json() makes a tree, for files as small as a config. Everything throws kBadJson with the byte.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

enum class JsonType : u8 { kNull, kBool, kNumber, kString, kArray, kObject };
std::string_view json_type_name(JsonType type);  // "a number"

// What counts as a number: kPython takes NaN, Infinity and -Infinity too, which Python's json module writes
// (Hugging Face configs have them).
enum class JsonNumbers : u8 { kStrict, kPython };

// Whether a number is written without fraction and exponent.
bool json_integer_spelling(std::string_view number);
// What keeps a number from being an integer of 63 bits; "" when nothing does, and then `value` is set.
std::string json_integer_fault(std::string_view number, i64& value);

class JsonReader {
 public:
  static constexpr int kMaxDepth = 64;
  static constexpr std::size_t kMaxKeyBytes = 1 << 16;

  // Strings that are handed out are views into `text` or into the reader. `base` is where the text begins in
  // its file.
  explicit JsonReader(std::string_view text, int max_depth = kMaxDepth, i64 base = 0,
                      JsonNumbers numbers = JsonNumbers::kStrict);

  JsonType peek();
  void begin_object();
  bool next_key(std::string_view& key);  // false: the object has ended
  void begin_array();
  bool next_item();  // false: the array has ended
  std::string_view string();
  std::string_view number();  // as it is written
  i64 integer();              // throws for a fraction, an exponent, or what does not fit 63 bits
  bool boolean();
  void null();
  void skip();  // a value of any type, checked like any other
  void end();   // nothing but white space may follow; gives the memory of keys back

  // Where the value last asked for begins in the file, for the errors of callers.
  i64 offset() const { return base_ + static_cast<i64>(at_); }
  [[noreturn]] void fail(std::string message) const { fail_at(at_, std::move(message)); }

 private:
  // The keys of one object, so far.
  struct Keys {
    std::vector<std::string_view> names;
    std::vector<u32> slots;  // open addressing, index + 1 into names; unused while there are few
  };

  [[noreturn]] void fail_at(std::size_t at, std::string message) const;
  void check_utf8() const;
  char first_byte(JsonType wanted);
  void open(JsonType type);
  bool next(char closing, const char* what);
  void word(std::string_view literal);
  std::size_t number_bytes() const;
  std::string_view scan_string();
  std::string_view unescape(std::size_t begin);
  void append_escape(std::string& out);
  unsigned hex4();
  void note_key(std::string_view key, std::size_t at);
  void insert_key(Keys& keys, u32 index, std::size_t at);

  std::string_view text_;
  i64 base_;
  std::size_t at_ = 0;      // the value last asked for
  std::size_t cursor_ = 0;  // the next unread byte
  std::size_t max_depth_;
  bool non_finite_;         // NaN and the infinities are numbers
  std::vector<u8> first_;   // one an open bracket: no item yet
  std::vector<Keys> keys_;  // one a depth, reused
  std::deque<std::string> unescaped_;
};

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

  // The member of an object, or null when there is none or this is no object.
  const JsonValue* find(std::string_view key) const;

  // The value as a type; throws kBadJson that names `what` ("hidden_size") when it is another.
  bool boolean(std::string_view what) const;
  i64 integer(std::string_view what) const;
  double real(std::string_view what) const;
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

JsonValue parse_json(std::string_view text, int max_depth = JsonReader::kMaxDepth,
                     JsonNumbers numbers = JsonNumbers::kStrict);

bool is_utf8(std::string_view text);

// Appends the text as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);

}  // namespace mckpt::impl
