// Takes names apart at the part that DeepSpeed's module of experts always has.
#include "io/zero/experts.h"

#include <algorithm>
#include <charconv>

#include "core/base/text.h"

namespace mckpt::impl {

std::optional<ZeroExpertName> zero_expert_name(std::string_view name) {
  constexpr std::string_view kExperts = ".experts.deepspeed_experts.";
  std::size_t at = name.find(kExperts);
  if (at == name.npos) return std::nullopt;
  std::string_view behind = name.substr(at + kExperts.size());
  i64 expert = 0;
  auto [end, error] = std::from_chars(behind.data(), behind.data() + behind.size(), expert);
  std::size_t digits = static_cast<std::size_t>(end - behind.data());
  if (error != std::errc() || digits > 6 || digits == behind.size() || behind[digits] != '.' || expert < 0)
    return std::nullopt;
  return ZeroExpertName{name.substr(0, at + kExperts.size() - 1), expert, behind.substr(digits)};
}

ZeroLocalExperts::ZeroLocalExperts(const ZeroGroup& group) {
  for (const ZeroParameter& p : group)
    if (std::optional<ZeroExpertName> name = zero_expert_name(p.name)) {
      i64& count = counts_[name->front];
      count = std::max(count, name->expert + 1);
    }
}

std::string ZeroLocalExperts::global_name(std::string_view local, i64 set) const {
  std::optional<ZeroExpertName> name = zero_expert_name(local);
  if (!name) return std::string(local);
  return cat(name->front, ".", set * counts_.find(name->front)->second + name->expert, name->rest);
}

}  // namespace mckpt::impl
