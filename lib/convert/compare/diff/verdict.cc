// Counts the rows of a diff by kind, and puts the counts into a sentence.
#include "convert/compare/diff/verdict.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "convert/compare/diff/diff.h"
#include "core/base/text.h"
#include "io/store/finding.h"

namespace mckpt::impl {
namespace {

using Kind = DiffRow::Kind;

std::string two_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", value);
  return text;
}

const DiffRow* most_different(const Diff& diff) {
  for (const DiffRow& r : diff.rows)
    if (r.kind == Kind::kValues && r.distance && r.distance->not_finite == 0 && r.distance->relative_l2())
      return &r;
  return nullptr;
}

}  // namespace

DiffCounts diff_counts(const Diff& diff) {
  DiffCounts c;
  std::set<std::string_view> unequal;
  for (const DiffRow& r : diff.rows) {
    c.only_a += r.kind == Kind::kOnlyA, c.only_b += r.kind == Kind::kOnlyB;
    c.headers += r.kind == Kind::kShape || r.kind == Kind::kDtype;
    c.casts += r.kind == Kind::kCast;
    c.others += r.kind == Kind::kObject || r.kind == Kind::kFile;
    if (r.kind != Kind::kValues) continue;
    (r.alike() ? c.alike : c.values)++;
    unequal.insert(r.name);
  }
  for (const std::string& name : diff.report.compared) c.equal += !unequal.contains(name);
  for (const DiffRow& r : diff.rows) c.equal_casts += r.kind == Kind::kCast && !unequal.contains(r.name);
  return c;
}

std::string diff_verdict(const Diff& diff) {
  const DiffCounts c = diff_counts(diff);
  i64 all = c.equal + c.alike + c.tensors_differ();
  // " of the choice", where not all tensors are
  const std::string of = diff.choice.empty()
                             ? ""
                             : cat(all == 1 ? " that matches '" : " that match '", escaped(diff.choice), "'");
  std::string same = cat(with_commas(c.equal), c.equal == 1 ? " is bit-equal" : " are bit-equal",
                         c.equal_casts > 0 ? cat(" (", with_commas(c.equal_casts), " after a cast)") : "");
  const std::string_view beyond = c.alike > 0 ? " beyond the tolerance" : "";
  std::string out;
  if (diff.equal)
    return cat("equal: ", all == 1 ? "the " : "all ", counted(all, "tensor"),
               of.empty() ? " and everything else that was compared" : of);
  if (all == 0)
    out = "no tensor could be compared";
  else if (c.tensors_differ() == 0 && c.casts > 0)  // which makes them unequal, within any tolerance
    out = cat("no value differs", beyond, ", but ", counted(c.casts, "tensor"),
              c.casts == 1 ? " has" : " have", " another type: ", same);
  else if (c.tensors_differ() == 0)
    out = cat("no tensor", of.empty() ? "" : cat(" that matches '", escaped(diff.choice), "'"), " differs",
              beyond, ": ", same);
  else
    out = cat(with_commas(c.tensors_differ()), " of ", counted(all, "tensor"), of,
              c.tensors_differ() == 1 ? " differs, " : " differ, ", same);
  if (c.alike > 0) out += cat(", ", with_commas(c.alike), " within the tolerance");
  i64 not_finite = 0;
  for (const DiffRow& r : diff.rows)
    not_finite += r.kind == Kind::kValues && r.distance && r.distance->not_finite > 0;
  if (not_finite > 0)
    out += cat("; ", counted(not_finite, "tensor"), not_finite == 1 ? " has" : " have",
               " NaN or infinities on one side");
  if (const DiffRow* worst = most_different(diff))
    out += cat("; the largest relative difference is ", two_digits(*worst->distance->relative_l2()), " in ",
               escaped(worst->name));
  i64 problems = std::ranges::count_if(diff.findings, [](const Finding& f) { return !f.warning; });
  if (problems > 0) out += cat("; ", counted(problems, "problem"), " kept something from being compared");
  if (c.others > 0)
    out += cat("; ", counted(c.others, "difference"), " in objects and files beside the tensors");
  return out;
}

}  // namespace mckpt::impl
