// Collects all findings about a checkpoint and decides which of them stop a conversion. Only damage that
// leaves every other tensor as it was may be accepted.
#include "convert/open/damage.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "io/dcp/check/check.h"
#include "io/dcp/dcp.h"
#include "io/store/lone_shard.h"
#include "io/store/soundness.h"
#include "io/store/state_part.h"
#include "io/store/store.h"
#include "io/verify/manifest_check.h"

#include <algorithm>
#include <array>

namespace mckpt::impl {
namespace {

// Whether a file of the optimizer is lost in which no weight is: files of Megatron's ranks have the two
// apart.
bool is_lost_optimizer(const Store& store, const Finding& f) {
  return store.driver().ranks_apart && f.code == Code::kShardMissing &&
         part_of_path(f.file) == StatePart::kOptimizer;
}

}  // namespace

std::span<const Code> acceptable_damage() {
  static constexpr std::array kCodes = {Code::kCounterpart, Code::kNumberGap,        Code::kPipelineLoss,
                                        Code::kMixedSaves,  Code::kFrozenParameters, Code::kBadScale};
  return kCodes;
}

std::span<const Code> acceptable_codes() {
  static const std::vector<Code> codes = [] {
    std::vector<Code> all(acceptable_damage().begin(), acceptable_damage().end());
    all.push_back(Code::kContradiction);
    std::ranges::sort(all);
    return all;
  }();
  return codes;
}

void refuse_lone_shards(const Store& store, std::string_view doing) {
  auto found = std::ranges::find(store.findings(), Code::kShardAlone, &Finding::code);
  if (found == store.findings().end()) return;
  throw Error(Code::kShardAlone,
              cat("the file of one rank has pieces of tensors, which cannot be ", doing, " as whole ones"))
      .file(store.root())
      .found(found->message)
      .help(kNameAllRanks);
}

std::vector<Finding> refuse_damage(const Store& store, CheckedPart parts, std::span<const Code> accepted,
                                   bool (*except)(const Finding&)) {
  std::vector<Finding> findings = store.findings();
  if (except) std::erase_if(findings, except);
  if (parts == CheckedPart::kModel)
    std::erase_if(findings, [&](const Finding& f) { return is_lost_optimizer(store, f); });
  for (Finding& f : dcp_damage(store, parts)) findings.push_back(std::move(f));
  auto is_in = [](std::span<const Code> codes, Code code) {
    return std::ranges::find(codes, code) != codes.end();
  };
  for (Finding& f : findings) {
    f.warning |= is_in(accepted, f.code) && is_in(acceptable_damage(), f.code);
    if (!f.warning && is_in(acceptable_damage(), f.code))
      f.help +=
          cat(f.help.empty() ? "" : "; ", "`accept` ", code_name(f.code), " uses the checkpoint as it is");
  }
  // A file that is not the one that mckpt wrote explains what is wrong with the names in it.
  bool odd_names = std::ranges::any_of(
      findings, [&](const Finding& f) { return !f.warning && is_in(acceptable_damage(), f.code); });
  if (odd_names) require_listed_files(store.root(), store.opening());
  require_sound(findings, store.root());
  return findings;
}

}  // namespace mckpt::impl
