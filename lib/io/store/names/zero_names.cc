// Compares names with patterns in which # is a number.
#include "io/store/names/zero_names.h"

#include <vector>

namespace mckpt::impl {
namespace {

constexpr std::size_t kMostDigits = 9;

// The numbers in the places of #; nothing if the name has another form.
std::optional<std::vector<i64>> numbers_in(std::string_view name, std::string_view pattern) {
  std::vector<i64> numbers;
  for (char c : pattern) {
    if (c != '#') {
      if (!name.starts_with(c)) return std::nullopt;
      name.remove_prefix(1);
      continue;
    }
    std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
    if (digits == 0 || digits > kMostDigits) return std::nullopt;
    i64 number = 0;
    for (char digit : name.substr(0, digits)) number = number * 10 + (digit - '0');
    numbers.push_back(number);
    name.remove_prefix(digits);
  }
  if (!name.empty()) return std::nullopt;
  return numbers;
}

}  // namespace

bool is_zero_script(std::string_view file) { return file == "zero_to_fp32.py" || file == "zero_to_torch.py"; }

std::optional<ZeroName> zero_name(std::string_view file) {
  using Kind = ZeroName::Kind;
  if (auto n = numbers_in(file, "mp_rank_#_model_states.pt")) return ZeroName{Kind::kModel, -1, (*n)[0]};
  if (auto n = numbers_in(file, "zero_pp_rank_#_mp_rank_#_model_states.pt"))
    return ZeroName{Kind::kModel, (*n)[0], (*n)[1]};
  if (auto n = numbers_in(file, "layer_#_expert_#_mp_rank_#_model_states.pt"))
    return ZeroName{Kind::kExpert, -1, (*n)[2], (*n)[0], (*n)[1]};
  if (auto n = numbers_in(file, "expert_#_mp_rank_#_model_states.pt"))
    return ZeroName{Kind::kExpert, -1, (*n)[1], -1, (*n)[0]};
  if (auto n = numbers_in(file, "expp_rank_#_mp_rank_#_optim_states.pt"))
    return ZeroName{Kind::kExpertOptimizer, (*n)[0], (*n)[1]};
  for (const char* pattern : {"layer_#-model_#-model_states.pt", "layer_#-model_states.pt"})
    if (numbers_in(file, pattern)) return ZeroName{Kind::kPipelineLayer};
  for (std::string_view precision : {"bf16_", "fp16_"})
    if (file.starts_with(precision)) {
      file.remove_prefix(precision.size());
      break;
    }
  if (auto n = numbers_in(file, "zero_pp_rank_#_mp_rank_#_optim_states.pt"))
    return ZeroName{Kind::kOptimizer, (*n)[0], (*n)[1]};
  return std::nullopt;
}

}  // namespace mckpt::impl
