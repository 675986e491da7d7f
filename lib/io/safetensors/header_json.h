// HeaderJson walks the JSON of a safetensors header from front to back and builds nothing; its caller asks
// for what it expects:
//
//   HeaderJson json(text, 8);
//   std::string_view key;
//   for (json.begin_object(); json.next_key(key);)
//     key == "size" ? size = json.integer() : json.skip();
//   json.end();
//
// All other documents are read by io/json/json.h. Headers have a reader of their own because they are what
// every command reads first, and big models have a hundred thousand entries: 70 ms here, 195 ms for the
// events of nlohmann/json alone, 389 ms as a tree (docs/decisions.md). It is as strict: UTF-8 without a byte
// order mark, the whole input, no key twice in an object (compared after unescaping), bounded depth, integers
// that stay integers. tests/fuzz/json_fuzz.cc compares the two. Everything throws kBadJson with the byte.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "io/json/json.h"
#include "io/json/json_keys.h"

namespace mckpt::impl {

class HeaderJson {
 public:
  // Strings that are handed out are views into `text` or into the reader. `base` is where the text begins in
  // its file.
  explicit HeaderJson(std::string_view text, i64 base = 0, int max_depth = kMaxJsonDepth);

  JsonType peek();
  void begin_object();
  bool next_key(std::string_view& key);  // false: the object has ended
  void begin_array();
  bool next_item();  // false: the array has ended
  std::string_view string();
  std::string_view number();  // as it is written
  // Throws for a fraction, an exponent, -0, which the safetensors library reads as a float, and for a number that
  // does not fit 63 bits.
  i64 integer();
  bool boolean();
  void null();
  void skip();  // a value of any type, checked like any other
  void end();   // nothing but white space may follow; gives the memory of keys back

  // Where the value last asked for begins in the file, for the errors of callers.
  i64 offset() const { return base_ + static_cast<i64>(at_); }
  [[noreturn]] void fail(std::string message) const { fail_at(at_, std::move(message)); }

 private:
  [[noreturn]] void fail_at(std::size_t at, std::string message) const;
  char first_byte(JsonType wanted);
  void open(JsonType type);
  bool next(char closing, const char* what);
  void word(std::string_view literal);
  std::string_view scan_string();
  std::string_view unescape(std::size_t begin);
  void append_escape(std::string& out);
  unsigned hex4();

  std::string_view text_;
  i64 base_;
  std::size_t at_ = 0;      // the value last asked for
  std::size_t cursor_ = 0;  // the next unread byte
  std::size_t max_depth_;
  std::vector<u8> first_;       // one an open bracket: no item yet
  std::vector<JsonKeys> keys_;  // one a depth, reused
  std::deque<std::string> unescaped_;
};

}  // namespace mckpt::impl
