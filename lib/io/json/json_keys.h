// The checks of JSON beyond the grammar: that a text is UTF-8 without a byte order mark, that no object has a
// key twice, and that integers keep their 64 bits.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

inline constexpr std::size_t kMaxJsonKeyBytes = 1 << 16;

// The keys of one object, so far.
class JsonKeys {
 public:
  // Takes a key, which is compared after unescaping and outlives this. False: the object has it already.
  bool add(std::string_view key);
  void clear();

 private:
  bool insert(u32 index);

  std::vector<std::string_view> names_;
  std::vector<u32> slots_;  // open addressing, index + 1 into names_; unused while there are few
};

[[noreturn]] void throw_bad_json(std::string message, i64 offset);

// Throws kBadJson for a byte order mark and for bytes that are not UTF-8. `base` is where the text begins in
// its file.
void check_json_text(std::string_view text, i64 base);

// Throws kBadJson when this key, at `offset` in the file, is too long, or one that its object has already.
void add_json_key(JsonKeys& keys, std::string_view key, i64 offset);

// Whether a number is written without fraction and exponent.
bool json_integer_spelling(std::string_view number);
// Says what keeps a number from being an integer of 63 bits; "" when nothing does, and then `value` is set.
std::string json_integer_fault(std::string_view number, i64& value);

}  // namespace mckpt::impl
