// Finds the numbers in a name, and the words by which a module is known.
#include "page/data/tensor_place.h"

#include <charconv>
#include <optional>

#include "io/store/state_part.h"

namespace mckpt::impl {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A number in a name: its digits, and its value.
struct NameNumber {
  std::size_t begin = 0, end = 0;
  i64 value = 0;
};

// The next number from `at` on that counts something: a whole part of the dotted name, or the digits behind
// "weight" or "bias" ("linear_fc1.weight12_w" is of expert 12). Leading zeros would be lost, so such digits
// are text.
std::optional<NameNumber> next_number(std::string_view name, std::size_t at) {
  for (; at < name.size(); at++) {
    if (!is_digit(name[at]) || (at > 0 && is_digit(name[at - 1]))) continue;
    std::size_t end = at;
    while (end < name.size() && is_digit(name[end])) end++;
    std::string_view before = name.substr(0, at);
    const bool whole_part = (at == 0 || before.ends_with('.')) && (end == name.size() || name[end] == '.');
    const bool behind_word = before.ends_with(".weight") || before.ends_with(".bias");
    const bool plain = end - at < 10 && (name[at] != '0' || end - at == 1);
    if (!plain || !(whole_part || behind_word)) continue;
    NameNumber found{at, end};
    std::from_chars(name.data() + at, name.data() + end, found.value);
    return found;
  }
  return std::nullopt;
}

bool has_any(std::string_view name, std::initializer_list<std::string_view> words) {
  for (std::string_view word : words)
    if (name.find(word) != name.npos) return true;
  return false;
}

}  // namespace

TensorPlace tensor_place(std::string_view name) {
  TensorPlace place;
  std::size_t rest = 0;
  std::optional<NameNumber> number = next_number(name, 0);
  const bool layer = number && number->begin > 0 && number->end < name.size() && name[number->end] == '.' &&
                     name[number->begin - 1] == '.';
  if (layer) {
    place.section = name.substr(0, number->begin - 1);
    place.layer = number->value;
    rest = number->end + 1;
    number = next_number(name, rest);
  }
  if (number) {
    place.before = name.substr(rest, number->begin - rest);
    place.member = number->value;
    place.after = name.substr(number->end);
  } else {
    place.before = name.substr(rest);
  }
  return place;
}

ModulePart module_part(std::string_view name) {
  if (part_of(name) == StatePart::kOptimizer) return ModulePart::kOptimizer;
  if (has_any(name, {"norm", ".ln_", "ln_f", ".ln1.", ".ln2."})) return ModulePart::kNorm;
  if (has_any(name, {"embed", "lm_head", "output_layer", ".wte.", ".wpe."})) return ModulePart::kEmbedding;
  if (has_any(name, {"router", "mlp.gate.", "gate.e_score", "expert_bias"})) return ModulePart::kRouter;
  if (has_any(name, {"expert"})) return ModulePart::kExperts;
  if (has_any(name, {"attn", "attention", "mixer", "mamba"})) return ModulePart::kAttention;
  if (has_any(name, {"mlp", "ffn", "feed_forward", ".fc1.", ".fc2."})) return ModulePart::kMlp;
  return ModulePart::kOther;
}

std::string_view module_part_name(ModulePart part) {
  constexpr std::string_view kNames[] = {"embedding", "attention", "mlp",       "experts",
                                         "router",    "norm",      "optimizer", "other"};
  return kNames[static_cast<int>(part)];
}

}  // namespace mckpt::impl
