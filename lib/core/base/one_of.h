// The end of every list of words that a value may be: "auto, keep or bf16".
#pragma once

#include <iterator>
#include <string>

namespace mckpt::impl {

template <typename Range>
std::string one_of(const Range& words) {
  std::string out;
  auto left = std::size(words);
  for (const auto& word : words) {
    if (!out.empty()) out += left == 1 ? " or " : ", ";
    out += word;
    left--;
  }
  return out;
}

}  // namespace mckpt::impl
