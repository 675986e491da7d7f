// Mutation of bytes and of texts.
#include "tests/fuzz/mutate/mutator.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace mckpt::impl::mutate {
namespace {

void change_one(std::string& s, const std::string* other, Choice& choice) {
  std::size_t at = static_cast<std::size_t>(choice.below(std::ssize(s))),
              length = 1 + static_cast<std::size_t>(choice.below(choice.one_in(4) ? 64 : 4));
  length = std::min(length, s.size() - at);
  switch (choice.below(8)) {
    case 0:
      s[at] = static_cast<char>(s[at] ^ 1 << choice.below(8));
      break;
    case 1:
      s[at] = static_cast<char>(choice.next());
      break;
    case 2:
      s.erase(at, length);
      break;
    case 3:
      s.insert(at, s.substr(at, length));
      break;
    case 4:
      s.insert(at, length, static_cast<char>(choice.next()));
      break;
    case 5:
      s.replace(at, length, s, static_cast<std::size_t>(choice.below(std::ssize(s))), length);
      break;
    case 6: {  // a number of 1, 2, 4 or 8 bytes
      std::size_t width = std::min(std::size_t{1} << choice.below(4), s.size() - at);
      u64 v = 0;
      for (std::size_t i = 0; i < width; i++) v |= u64{static_cast<u8>(s[at + i])} << 8 * i;
      v = static_cast<u64>(choice.border_near(static_cast<i64>(v)));
      for (std::size_t i = 0; i < width; i++) s[at + i] = static_cast<char>(v >> 8 * i);
      break;
    }
    default:
      if (other && !other->empty())
        s.replace(at, length, *other, static_cast<std::size_t>(choice.below(std::ssize(*other))), length * 4);
      else
        std::reverse(s.begin() + static_cast<i64>(at), s.begin() + static_cast<i64>(at + length));
  }
}

}  // namespace

std::string bytes(std::string input, const std::string* other, Choice& choice) {
  for (i64 n = 1 + choice.below(3); n > 0; n--) {
    if (input.empty()) input.assign(1, static_cast<char>(choice.next()));
    change_one(input, other, choice);
  }
  return input;
}

std::string text_near(const std::string& text, const std::string& other, Choice& choice) {
  static constexpr std::array<std::string_view, 16> kWords = {
      "../",      "/",    ".", "..", "",       "\\",      "\n",           "\x1b[31m",
      "\xc3\xa9", "\xff", "0", "_",  "model.", ".weight", "__0_0.distcp", "module."};
  std::string out = text;
  std::size_t at = static_cast<std::size_t>(choice.below(std::ssize(text) + 1));
  switch (choice.below(8)) {
    case 0:
    case 1:
      return other;
    case 2:
      return out.insert(at, choice.of(kWords));
    case 3:
      return std::string(choice.of(kWords)) + out;
    case 4:
      return out + std::string(choice.of(kWords));
    case 5:
      return out.substr(0, at) + other.substr(std::min(at, other.size()));
    case 6: {  // another digit
      std::size_t digit = out.find_first_of("0123456789", at);
      if (digit == out.npos) return out.substr(0, at);
      out[digit] = static_cast<char>('0' + choice.below(10));
      return out;
    }
    default:
      if (out.empty()) return "a";
      return bytes(std::move(out), &other, choice);
  }
}

}  // namespace mckpt::impl::mutate
