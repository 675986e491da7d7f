// Which damage of a checkpoint is refused before the checkpoint is converted.
#include "convert/source/damage.h"

#include <algorithm>
#include <array>

namespace mckpt {

bool is_acceptable(Code code) {
  constexpr std::array kCodes = {Code::kCounterpart, Code::kNumberGap, Code::kPipelineLoss,
                                 Code::kMixedSaves};
  return std::ranges::find(kCodes, code) != kCodes.end();
}

std::vector<Finding> refuse_damage(const Store& store, NamesOf parts, std::span<const Code> accepted,
                                   bool (*except)(const Finding&)) {
  std::vector<Finding> findings = store.findings();
  if (except) std::erase_if(findings, except);
  for (Finding& f : dcp_damage(store, parts)) findings.push_back(std::move(f));
  for (Finding& f : findings) {
    f.warning |= std::ranges::find(accepted, f.code) != accepted.end();
    if (!f.warning && is_acceptable(f.code))
      f.help += cat(f.help.empty() ? "" : "; ", "`accept` ", code_name(f.code), " takes it as it is");
  }
  require_sound(findings, store.root());
  return findings;
}

}  // namespace mckpt
