// The words that vocab_choice_of() takes, for messages.
#pragma once

#include <string_view>

namespace mckpt::impl {

inline constexpr std::string_view kVocabWords =
    "keep, auto, a number of rows, or divisible-by- with a number";

}  // namespace mckpt::impl
