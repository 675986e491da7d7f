// The lint decides; this adds its findings to a report.
#include "convert/compare/checks/optimizer.h"

#include <algorithm>

#include "convert/open/checkpoint.h"
#include "convert/optimizer/empty_shards.h"
#include "convert/optimizer/lint.h"
#include "convert/optimizer/read_content.h"
#include "io/store/lone_shard.h"
#include "io/store/store.h"
#include "io/verify/verify.h"

namespace mckpt::impl {
namespace {

// Whether the report says of the same parameter that a state and a parameter do not fit.
bool is_told(const Finding& finding, const VerifyReport& report) {
  return finding.code == Code::kCounterpart && std::ranges::any_of(report.findings, [&](const Finding& f) {
           return f.code == Code::kCounterpart && f.tensor.find(finding.tensor) != f.tensor.npos;
         });
}

void add_check(const Store& store, const OptimizerContent& content, VerifyReport& report) {
  std::vector<Finding> found = lint(content);
  // States that are not in the file of one rank are in the others.
  const bool alone = is_lone_shard(store);
  std::erase_if(
      found, [&](const Finding& f) { return is_told(f, report) || (alone && f.code == Code::kCounterpart); });
  Check check{.name = "groups", .status = status_of(found), .unit = "parameters"};
  const bool has_states =
      std::ranges::any_of(content.parameters, [](const auto& p) { return !p.states.empty(); });
  check.count = std::ranges::count_if(
      content.parameters, [](const auto& p) { return !p.again && (p.group >= 0 || !p.states.empty()); });
  if (!has_states) check.count = std::ssize(content.groups), check.unit = "groups";
  check.note = has_states ? empty_shards_text(empty_shards(store, content)) : "states were not read";
  report.add(std::move(check), std::move(found));
}

}  // namespace

void check_optimizer(const Store& store, VerifyReport& report) {
  const OptimizerContent content = optimizer_content(store);
  if (!content.empty()) add_check(store, content, report);
}

bool check_optimizer(const CheckpointModel& checkpoint, VerifyReport& report) {
  const OptimizerContent content = optimizer_content(checkpoint);
  if (!content.empty()) add_check(checkpoint.store(), content, report);
  return !content.empty();
}

}  // namespace mckpt::impl
