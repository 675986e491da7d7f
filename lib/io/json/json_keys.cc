// A few keys are compared one by one, many are hashed. ASCII is checked eight bytes at a time.
#include "io/json/json_keys.h"

#include <bit>
#include <charconv>
#include <cstring>

#include "core/base/error.h"
#include "core/base/name_hash.h"

namespace mckpt::impl {
namespace {

// As many keys as are compared one by one before a hash table is worth building.
constexpr std::size_t kFewKeys = 8;

// Whether the 8 bytes at p are ASCII.
bool eight_ascii_bytes(const char* p) {
  u64 v;
  std::memcpy(&v, p, 8);
  return (v & 0x8080808080808080) == 0;
}

}  // namespace

bool JsonKeys::add(std::string_view key) {
  names_.push_back(key);
  if (names_.size() <= kFewKeys) {
    for (std::size_t i = 0; i + 1 < names_.size(); i++)
      if (names_[i] == key) return false;
    return true;
  }
  if (slots_.size() < names_.size() * 2) {
    slots_.assign(std::bit_ceil(names_.size() * 4), 0);
    for (u32 i = 0; i + 1 < names_.size(); i++) insert(i);
  }
  return insert(static_cast<u32>(names_.size() - 1));
}

bool JsonKeys::insert(u32 index) {
  std::string_view key = names_[index];
  std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = NameHash()(key) & mask;; slot = (slot + 1) & mask) {
    if (slots_[slot] == 0) {
      slots_[slot] = index + 1;
      return true;
    }
    if (names_[slots_[slot] - 1] == key) return false;
  }
}

void JsonKeys::clear() {
  names_.clear();
  slots_.clear();
}

void throw_bad_json(std::string message, i64 offset) {
  throw Error(Code::kBadJson, std::move(message)).offset(offset);
}

void check_json_text(std::string_view text, i64 base) {
  if (text.starts_with("\xef\xbb\xbf")) throw_bad_json("the JSON begins with a byte order mark (BOM)", base);
  std::size_t i = 0;
  while (i < text.size()) {
    if (i + 8 <= text.size() && eight_ascii_bytes(text.data() + i)) {
      i += 8;
      continue;
    }
    std::size_t n = utf8_sequence(text.substr(i, 4));
    if (n == 0) throw_bad_json("the JSON text is not UTF-8", base + static_cast<i64>(i));
    i += n;
  }
}

void add_json_key(JsonKeys& keys, std::string_view key, i64 offset) {
  if (key.size() > kMaxJsonKeyBytes)
    throw_bad_json(cat("a key of ", std::ssize(key), " bytes is over the limit of ", kMaxJsonKeyBytes),
                   offset);
  if (!keys.add(key)) throw_bad_json(cat("the key '", escaped(key), "' is there twice (duplicate)"), offset);
}

bool json_integer_spelling(std::string_view number) {
  return number.find_first_not_of("-0123456789") == std::string_view::npos;
}

std::string json_integer_fault(std::string_view number, i64& value) {
  if (!json_integer_spelling(number)) return cat("an integer is expected, not ", escaped(number, 40));
  auto [end, ec] = std::from_chars(number.data(), number.data() + number.size(), value);
  return ec == std::errc{} ? ""
                           : cat("the integer ", escaped(number, 40), " does not fit 63 bits (overflow)");
}

}  // namespace mckpt::impl
