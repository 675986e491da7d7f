// Names with placeholders: "layers.{L}.mlp.experts.{E}.up_proj.weight". A placeholder is one capital letter
// in braces; row.h lists the letters and their meaning. Filling a name is done for every parameter and expert
// of a model, so it appends to a string and parses nothing.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

// A number for each placeholder; -1: none.
class Numbers {
 public:
  static constexpr std::string_view kLetters = "LESMINFP";

  i64& operator[](char letter) { return numbers_[kLetters.find(letter)]; }
  i64 operator[](char letter) const { return numbers_[kLetters.find(letter)]; }

 private:
  std::array<i64, kLetters.size()> numbers_{-1, -1, -1, -1, -1, -1, -1, -1};
};

// The pattern with numbers filled in. pre: it is well formed, and all its placeholders have numbers.
void append_name(std::string& out, std::string_view pattern, const Numbers& numbers);

// The letters of the placeholders, in order: "LE". Throws kBadMap for a brace that is not a placeholder.
std::string placeholders(std::string_view pattern);

}  // namespace mckpt::impl
