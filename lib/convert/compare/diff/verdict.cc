// Counts the rows of a diff by kind, and puts the counts into a sentence.
#include "convert/compare/diff/verdict.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "convert/compare/activations.h"
#include "convert/compare/checks/module_copies.h"
#include "convert/compare/compare_sides.h"
#include "convert/compare/diff/diff.h"
#include "convert/compare/object_check.h"
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

bool differs(const DiffRow& r) { return r.of_tensor() && r.kind != Kind::kCast && !r.alike(); }

// The row of a part whose distance is the largest: rows are in that order.
const DiffRow* most_different(const Diff& diff, StatePart part) {
  for (const DiffRow& r : diff.rows)
    if (r.kind == Kind::kValues && r.part == part && r.relative_l2()) return &r;
  return nullptr;
}

constexpr std::pair<StatePart, std::string_view> kParts[] = {{StatePart::kModel, "the weights"},
                                                             {StatePart::kOptimizer, "the optimizer"},
                                                             {StatePart::kOther, "the others"}};

// "; the largest relative difference is 0.1 in w", of each part by itself if not all are of one.
std::string largest_text(const Diff& diff) {
  std::vector<std::pair<std::string_view, const DiffRow*>> worst;
  for (const auto& [part, name] : kParts)
    if (const DiffRow* row = most_different(diff, part)) worst.emplace_back(name, row);
  std::string out;
  for (const auto& [name, row] : worst) {
    const bool first = out.empty();
    out += first ? "; the largest relative difference " : ", ";
    if (worst.size() > 1) out += cat("of ", name, " ");
    out += cat(first ? "is " : "", two_digits(*row->relative_l2()), " in ", escaped(row->name));
  }
  return out;
}

// " (4 weights, 8 states of the optimizer)", if not all that differ are weights.
std::string parts_text(const Diff& diff) {
  std::map<StatePart, i64> counts;
  std::set<std::string_view> seen;
  for (const DiffRow& r : diff.rows)
    if (differs(r) && seen.insert(r.name).second) counts[r.part]++;
  const i64 weights = counts[StatePart::kModel], states = counts[StatePart::kOptimizer],
            others = counts[StatePart::kOther];
  if (states + others == 0) return "";
  std::string out;
  auto add = [&](i64 count, std::string_view one, std::string_view more) {
    if (count > 0) out += cat(out.empty() ? " (" : ", ", with_commas(count), " ", count == 1 ? one : more);
  };
  add(weights, "weight", "weights");
  add(states, "state of the optimizer", "states of the optimizer");
  add(others, "other", "others");
  return out + ")";
}

// "288 are bit-equal, 3 have equal values in another type, 2 within the tolerance"
std::string same_text(const DiffCounts& c) {
  std::vector<std::string> parts;
  auto add = [&](i64 count, std::string_view one, std::string_view more) {
    if (count > 0) parts.push_back(cat(with_commas(count), count == 1 ? one : more));
  };
  add(c.equal, " is bit-equal", " are bit-equal");
  add(c.equal_casts, " has equal values in another type", " have equal values in another type");
  add(c.alike, " within the tolerance", " within the tolerance");
  if (c.unread > 0 && parts.empty()) parts.emplace_back("0 are bit-equal");
  add(c.unread, " could not be compared", " could not be compared");
  if (parts.empty()) return "0 are bit-equal";
  std::string out;
  for (const std::string& part : parts) out += cat(out.empty() ? "" : ", ", part);
  return out;
}

}  // namespace

DiffCounts diff_counts(const Diff& diff) {
  DiffCounts c;
  std::set<std::string_view> unequal, headers;
  for (const DiffRow& r : diff.rows) {
    c.only_a += r.kind == Kind::kOnlyA, c.only_b += r.kind == Kind::kOnlyB;
    c.headers += r.kind == Kind::kShape || r.kind == Kind::kDtype;
    if (r.kind == Kind::kShape || r.kind == Kind::kDtype) headers.insert(r.name);
    c.casts += r.kind == Kind::kCast;
    c.others += r.kind == Kind::kObject || r.kind == Kind::kFile;
    if (r.kind != Kind::kValues) continue;
    (r.alike() ? c.alike : c.values)++;
    unequal.insert(r.name);
  }
  for (const DiffRow& r : diff.rows)
    if (r.kind == Kind::kAttribute && !headers.contains(r.name))
      c.attributes += unequal.insert(r.name).second;
  std::set<std::string_view> equal;
  for (const std::string& name : diff.report.compared)
    if (!unequal.contains(name)) equal.insert(name);
  c.equal = std::ssize(equal);
  for (const DiffRow& r : diff.rows) c.equal_casts += r.kind == Kind::kCast && equal.contains(r.name);
  c.equal -= c.equal_casts;
  const auto against = std::ranges::find(diff.report.checks, "against", &Check::name);
  if (against != diff.report.checks.end())
    c.unread = std::max<i64>(0, std::min(against->unseen - c.only_a - c.headers,
                                         against->count + against->unseen + c.only_b - c.tensors()));
  return c;
}

std::string diff_verdict(const Diff& diff) {
  const DiffCounts c = diff_counts(diff);
  const i64 all = c.tensors();
  // " of the choice", where not all tensors are
  const std::string of = diff.choice.empty()
                             ? ""
                             : cat(all == 1 ? " that matches '" : " that match '", escaped(diff.choice), "'");
  const std::string same = same_text(c), types = cat(c.casts == 1 ? " has" : " have", " another type");
  const std::string_view beyond = c.alike > 0 ? " beyond the tolerance" : "";
  std::string out;
  if (diff.equal) {
    std::vector<std::string> buts;
    for (const std::string& left :
         {counted_others(diff.report), counted_module_copies(diff.report),
          counted_activation_scales(diff.report), counted_unseen_objects(diff.report)})
      if (!left.empty()) buts.push_back(cat(left, " not compared"));
    if (const std::string unread = counted_unread(diff.report.unread); !unread.empty())
      buts.push_back(cat(unread, " not read"));
    std::string but;
    for (std::size_t i = 0; i < buts.size(); i++)
      but += cat(i == 0 ? ", but " : i + 1 < buts.size() ? ", " : " and ", buts[i]);
    return cat("equal: ", all == 1 ? "the " : "all ", counted(all, "tensor"),
               of.empty() ? " and everything else that was compared" : of, but);
  }
  if (all == c.unread)
    out = "no tensor could be compared";
  else if (c.tensors_differ() == 0 && c.casts > 0)  // which makes them unequal, within any tolerance
    out = cat("no value differs", beyond, ", but ", with_commas(c.casts), " of ", counted(all, "tensor"), of,
              types, ": ", same);
  else if (c.tensors_differ() == 0)
    out = cat("no tensor", of.empty() ? "" : cat(" that matches '", escaped(diff.choice), "'"), " differs",
              beyond, ": ", same);
  else
    out = cat(with_commas(c.tensors_differ()), " of ", counted(all, "tensor"), of,
              c.tensors_differ() == 1 ? " differs" : " differ", parts_text(diff), ", ", same,
              c.casts > c.equal_casts ? cat("; ", with_commas(c.casts), types) : "");
  i64 not_finite = 0;
  for (const DiffRow& r : diff.rows) not_finite += r.kind == Kind::kValues && r.not_finite() > 0;
  if (not_finite > 0)
    out += cat("; ", counted(not_finite, "tensor"), not_finite == 1 ? " has" : " have",
               " NaN or infinities on one side");
  out += largest_text(diff);
  i64 problems = std::ranges::count_if(diff.findings, [](const Finding& f) { return !f.warning; });
  if (problems > 0) out += cat("; ", counted(problems, "problem"), " kept something from being compared");
  if (c.others > 0)
    out += cat("; ", counted(c.others, "difference"), " in objects and files beside the tensors");
  return out;
}

}  // namespace mckpt::impl
