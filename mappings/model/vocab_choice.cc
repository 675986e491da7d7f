// The words of settings and of plans for the rows of the vocabulary.
#include <charconv>

#include "core/base/text.h"
#include "mappings/model/run_setup.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kDivisible = "divisible-by-";

std::optional<i64> number_in(std::string_view word) {
  i64 number = 0;
  auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (fault != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return number;
}

}  // namespace

std::string vocab_word(const VocabChoice& choice) {
  switch (choice.kind) {
    case VocabChoice::kKeep:
      return "keep";
    case VocabChoice::kRows:
      return cat(choice.rows);
    case VocabChoice::kDivisor:
      return cat(kDivisible, choice.rows);
    case VocabChoice::kAuto:
      break;
  }
  return "auto";
}

std::optional<VocabChoice> vocab_choice_of(std::string_view word) {
  if (word == "keep") return VocabChoice{VocabChoice::kKeep, 0};
  if (word == "auto") return VocabChoice{};
  const bool divisor = word.starts_with(kDivisible);
  const std::optional<i64> number = number_in(divisor ? word.substr(kDivisible.size()) : word);
  if (!number || (divisor && *number < 1)) return std::nullopt;
  return VocabChoice{divisor ? VocabChoice::kDivisor : VocabChoice::kRows, *number};
}

}  // namespace mckpt::impl
