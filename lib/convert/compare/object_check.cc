// Makes the check of object_differences(), and lists the values that no conversion copies: fields of the
// grid, a new iteration number, objects that a change of format makes.
#include "convert/compare/object_check.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>

#include "convert/compare/comparing.h"
#include "convert/compare/differences/objects.h"
#include "convert/compare/sides/compare_options.h"
#include "convert/compare/sides/sides.h"
#include "convert/open/checkpoint.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "io/dcp/dcp.h"
#include "io/dcp/run/args.h"
#include "io/pickle/value.h"
#include "io/store/dcp_dialect.h"
#include "io/store/store.h"
#include "io/verify/verify.h"

namespace mckpt::impl {

namespace {

ObjectSide objects_of(const Opened& side) {
  return side.sharded ? ObjectSide(*side.sharded) : ObjectSide(side.store());
}

// Whether both sides are folders of torch_dist, in which an object that the facts do not hold, such as a
// random state, has one name.
bool are_torch_dist(const Sides& sides) {
  return sides.tested.sharded && sides.source.sharded &&
         dcp_dialect(sides.tested.sharded->on_disk()) == DcpDialect::kTorchDist &&
         dcp_dialect(sides.source.sharded->on_disk()) == DcpDialect::kTorchDist;
}

using Names = std::set<std::string, std::less<>>;

bool is_extra_state(std::string_view object) { return object.find("._extra_state/") != object.npos; }

// Objects that the facts of a run do not hold. An extra state of None, or of a list of it, is none: a run
// without FP8 saves it so.
Names unplaced_objects(const ObjectSide& side) {
  Names out;
  for (const Object& o : side.store.objects())
    if (!is_common_state(o.name) && !is_file(side.store, o)) out.insert(o.name);
  for (const RunFact& fact : side.facts.all) {
    const std::string name = name_of(fact);
    if (!is_extra_state(name)) continue;
    try {
      const std::shared_ptr<const PickleValue> value = side.facts.value(fact);
      if (!value) continue;
      bool none = value->is_none() || value->is(PickleValue::Kind::kList);
      for (PickleValue item : value->items()) none &= item.is_none();
      if (none) out.erase(name);
    } catch (const Error& e) {
      if (e.code() == Code::kInterrupted) throw;  // the comparison tells the others, with the name
    }
  }
  return out;
}

// The differences of these objects. A conversion leaves them out, and writes extra states of None: `left`
// gets the names of those that the source alone has, where the tested side is a result.
ObjectDifferences unplaced_differences(const Sides& sides, const Comparing& c, Names& left) {
  const ObjectSide tested(sides.tested.sharded->on_disk()), source(sides.source.sharded->on_disk());
  const Names here = unplaced_objects(tested), there = unplaced_objects(source);
  if (!c.options.counting.all) std::ranges::set_difference(there, here, std::inserter(left, left.end()));
  const auto apart = [&](std::string_view name) {
    return left.contains(name) || (!here.contains(name) && !there.contains(name));
  };
  return object_differences(tested, source, {}, apart, c.options.counting.all, c.options.threads);
}

void add(ObjectDifferences more, ObjectDifferences& to) {
  to.objects += more.objects, to.unread += more.unread;
  std::ranges::move(more.findings, std::back_inserter(to.findings));
  std::ranges::move(more.differences, std::back_inserter(to.differences));
  for (auto& [reason, names] : more.left_out)
    std::ranges::move(names, std::back_inserter(to.left_out[reason]));
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
  bool leaves = tested.leaves_objects() || source.leaves_objects();
  Names left;
  if (leaves && are_torch_dist(sides)) {
    leaves = false;
    add(unplaced_differences(sides, c, left), result);
  }
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
  if (!left.empty())
    reasons.push_back(cat(listed(std::vector<std::string_view>(left.begin(), left.end()), 3),
                          ", which a conversion leaves out"));
  if (leaves) reasons.push_back("objects that have no place under the names by which the two are compared");
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
