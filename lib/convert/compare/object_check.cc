// Makes the check of object_differences(), and lists the values that no conversion copies: fields of the
// grid, a new iteration number, objects that a change of format makes.
#include "convert/compare/object_check.h"

#include <algorithm>
#include <iterator>

#include "convert/compare/comparing.h"
#include "convert/compare/differences/objects.h"
#include "convert/compare/sides/compare_options.h"
#include "convert/compare/sides/sides.h"
#include "convert/open/checkpoint.h"
#include "core/base/text.h"
#include "io/verify/verify.h"

namespace mckpt::impl {

namespace {

ObjectSide objects_of(const Opened& side) {
  return side.sharded ? ObjectSide(*side.sharded) : ObjectSide(side.store());
}

}  // namespace

bool compare_objects(const Sides& sides, const Comparing& c) {
  VerifyReport& report = c.report;
  const ObjectSide tested = objects_of(sides.tested), source = objects_of(sides.source);
  const std::optional<OptionDifferences>& options = sides.options;
  if (!c.options.choice.all()) {
    objects_not_compared("tensors are chosen by name", report);
    return true;
  }
  ObjectDifferences result = object_differences(
      tested, source, sides.changes.of_tensors ? nullptr : sides.changes.left_out,
      [&](std::string_view name) { return options && is_option(name); }, c.options.counting.all,
      c.options.threads);
  std::vector<std::string> reasons;
  if (!result.of_grid.empty())
    reasons.push_back(cat(listed(result.of_grid), " of args, which describe the grid of a training run"));
  if (result.renumbered) reasons.push_back("iteration, after which the folder is named");
  if (!result.made.empty())
    reasons.push_back(cat(listed(result.made), ", which a change of format makes again"));
  for (const auto& [reason, names] : result.left_out)
    reasons.push_back(cat(listed(names, 3), " (", reason, ")"));
  if (options) {
    reasons.push_back(options->not_compared);
    std::ranges::copy(options->findings, std::back_inserter(result.findings));
    std::ranges::copy(options->differences, std::back_inserter(result.differences));
  }
  if (tested.leaves_objects() || source.leaves_objects())
    reasons.push_back("objects that have no place under the names by which the two are compared");
  std::string note;
  for (const std::string& reason : reasons) note += cat(note.empty() ? "not compared: " : "; ", reason);
  for (Difference& d : result.differences) report.differences.push_back(std::move(d));
  bool equal = result.findings.empty();
  // An object that is a file and was lost is named by the check of the files.
  std::erase_if(result.findings, [&](const Finding& f) {
    return std::ranges::any_of(report.findings,
                               [&](const Finding& o) { return !o.file.empty() && o.file == f.tensor; });
  });
  const bool said = result.findings.empty();
  bool none = result.objects == 0 && said;
  report.add({.name = "objects",
              .status = none   ? Check::Status::kNone
                        : said ? Check::Status::kPass
                               : Check::Status::kFail,
              .count = result.objects,
              .unit = "objects",
              .unseen = result.unread,
              .unseen_is = "could not be compared",
              .note = std::move(note)},
             std::move(result.findings));
  return equal;
}

void objects_not_compared(std::string reason, VerifyReport& report) {
  report.add({.name = "objects",
              .status = Check::Status::kNone,
              .unit = "objects",
              .note = cat("not compared: ", reason)},
             {});
}

std::string counted_unseen_objects(const VerifyReport& report) {
  const auto objects = std::ranges::find(report.checks, "objects", &Check::name);
  if (objects == report.checks.end() || objects->unseen == 0) return "";
  return cat(counted(objects->unseen, "object"), objects->unseen == 1 ? " was" : " were");
}

}  // namespace mckpt::impl
