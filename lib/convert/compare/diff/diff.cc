// Rows are made of the report of compare(): its list of unlike tensors with the counts of their differences.
// Findings that a row says already are left out.
#include "convert/compare/diff/diff.h"

#include <algorithm>
#include <map>
#include <set>

#include "convert/compare/diff/order.h"
#include "convert/compare/diff/rank_diff.h"
#include "convert/compare/differences/objects.h"
#include "convert/keys/name_rules.h"
#include "convert/own/memory_names.h"
#include "core/base/error.h"
#include "core/base/names.h"
#include "core/base/text.h"
#include "hf/adapter/adapted_store.h"
#include "io/dcp/keys/key.h"
#include "io/rank_dump/rank_dump.h"
#include "io/store/open/adapter_base.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

using Kind = DiffRow::Kind;

// "bfloat16 [2, 3]" and "bfloat16 [2, 4]" differ in shape, and perhaps also in type.
Kind header_kind(const UnlikeTensor& u) {
  auto shape = [](std::string_view text) { return text.substr(std::min(text.find(' '), text.size())); };
  return shape(u.tested) == shape(u.source) ? Kind::kDtype : Kind::kShape;
}

Kind row_kind(const UnlikeTensor& u) {
  switch (u.kind) {
    case UnlikeTensor::Kind::kOnlyTested:
      return Kind::kOnlyA;
    case UnlikeTensor::Kind::kOnlySource:
      return Kind::kOnlyB;
    case UnlikeTensor::Kind::kHeader:
      return header_kind(u);
    case UnlikeTensor::Kind::kCast:
      return Kind::kCast;
    case UnlikeTensor::Kind::kValues:
      return Kind::kValues;
  }
  return Kind::kValues;
}

// How far apart: by the relative distance; before all others NaN or infinities beside finite numbers, and
// numbers beside zeros, which are in no distance; behind all others what has none, such as integers.
double far_apart(const DiffRow& r) {
  constexpr double kUnknown = 1e300;
  if (r.kind != Kind::kValues) return 0;
  if (!r.distance) return -1;
  return r.relative_l2().value_or(kUnknown);
}

class Rows {
 public:
  // `root_b`: as in Diff; "": where it is not asked whose findings are.
  explicit Rows(const VerifyReport& report, std::string_view root_b = "")
      : report_(report), of_b_(of_side(root_b)) {
    for (const Difference& d : report.differences)
      if (d.items >= 0) counts_.emplace(d.tensor, &d);
    for (std::size_t i = 0; i < report.findings.size(); i++) {
      const Finding& f = report.findings[i];
      if (is_of_files(report.checks[report.check_of[i]].name)) files_.insert(f.file);
      if (f.code == Code::kUnequal && !f.tensor.empty()) unequal_.emplace(f.tensor, f.message);
    }
  }

  // Every row, and the findings that are not said by a row.
  void make(Diff& out) {
    tensors(out.rows);
    for (const Difference& d : report_.differences)
      if (d.items < 0) add_object(out.rows, d);
    for (std::size_t i = 0; i < report_.findings.size(); i++) {
      const std::string& check = report_.checks[report_.check_of[i]].name;
      if (is_said(out.rows, report_.findings[i], check)) continue;
      out.findings.push_back(report_.findings[i]);
      out.sides.push_back(side_of(report_.findings[i], check));
    }
  }

 private:
  void tensors(std::vector<DiffRow>& rows) {
    for (const UnlikeTensor& u : report_.unlike) {
      DiffRow row{
          .kind = row_kind(u), .name = u.tensor, .a = u.tested, .b = u.source, .part = diff_part(u.tensor)};
      if (auto count = counts_.find(u.tensor); row.kind == Kind::kValues && count != counts_.end()) {
        const Difference& d = *count->second;
        row.at = d.at, row.a = d.found, row.b = d.expected, row.items = d.items, row.beyond = d.beyond;
        row.distance = d.distance;
        row.file = d.file;
        if (d.distance && d.distance->largest.value_or(0) == 0 && d.distance->not_finite == 0)
          row.hint = "equal in value: signs of zero or bits of NaN differ";
      } else if (auto told = unequal_.find(u.tensor); row.kind == Kind::kValues && told != unequal_.end()) {
        row.hint = told->second;  // items that are smaller than a byte are not counted
      }
      named_.insert(u.tensor);
      rows.push_back(std::move(row));
    }
    std::ranges::stable_sort(rows, [](const DiffRow& x, const DiffRow& y) {
      if (x.kind != y.kind) return x.kind < y.kind;
      if (x.part != y.part) return x.part < y.part;
      return far_apart(x) > far_apart(y);
    });
  }

  // Objects that cannot be read belong to A, or to B if their finding says so.
  char side_of(const Finding& f, std::string_view check) const {
    if (check == "path" || check == "scales") return 'a';
    if (check == "source") return 'b';
    if (check != "objects") return '\0';
    return f.message.ends_with(of_b_) ? 'b' : 'a';
  }

  static bool is_of_files(std::string_view check) { return check == "assets" || check == "files"; }

  // A value of an object, or of a file that is JSON.
  void add_object(std::vector<DiffRow>& rows, const Difference& d) {
    const bool of_file = d.tensor == d.file && files_.contains(d.file);
    (of_file ? listed_files_ : objects_).insert(d.tensor);
    rows.push_back({.kind = of_file ? Kind::kFile : Kind::kObject,
                    .name = d.tensor,
                    .at = d.at,
                    .a = d.found,
                    .b = d.expected,
                    .file = d.file});
  }

  // Whether rows say what the finding says; a finding about a file or an object becomes a row if it can.
  bool is_said(std::vector<DiffRow>& rows, const Finding& f, const std::string& check) {
    if (f.code != Code::kUnequal) return false;
    if (check == "casts") return true;
    // "and 10 more of this kind": every tensor has a row.
    if (check == "against") return f.tensor.empty() || named_.contains(f.tensor);
    if (is_of_files(check) && !f.file.empty()) {
      if (!listed_files_.contains(f.file))
        rows.push_back(
            {.kind = Kind::kFile, .name = f.file, .at = f.offset < 0 ? f.message : cat("byte ", f.offset)});
      return true;
    }
    if (check == "metadata") return true;
    if (check != "objects" || f.tensor.empty()) return false;
    if (!objects_.contains(f.tensor))
      rows.push_back({.kind = Kind::kObject, .name = f.tensor, .at = f.message});
    return true;
  }

  const VerifyReport& report_;
  std::string of_b_;                                 // the end of findings about objects of B
  std::map<std::string, const Difference*> counts_;  // of tensors
  std::map<std::string, std::string> unequal_;       // what findings say of tensors
  std::set<std::string> named_, objects_;            // tensors and objects that have rows
  std::set<std::string> files_, listed_files_;       // of findings; of rows for single values
};

void refuse_unmatched(const ToleranceRules& within, const std::vector<std::string>& names) {
  for (const ToleranceRules::Rule& rule : within.rules)
    if (std::ranges::none_of(names, [&](const std::string& name) { return glob_match(rule.glob, name); }))
      throw Error(Code::kNoSuchTensor, "a rule for tolerances matches no tensor that was compared")
          .expected("a glob that matches a whole name, such as *.mlp.*")
          .found(cat("'", escaped(rule.glob), "'"));
  std::vector<std::string_view> globs;
  for (const ToleranceRules::Rule& rule : within.rules) globs.push_back(rule.glob);
  if (std::optional<std::size_t> shadowed =
          shadowed_glob(globs, std::ssize(names), [&](i64 i) -> std::string_view { return names[i]; }))
    throw Error(
        Code::kNoSuchTensor,
        "a rule for tolerances has no effect: a rule before it decides about every tensor that it matches")
        .found(cat("'", escaped(globs[*shadowed]), "'"))
        .note("of several rules that match a name, the first decides")
        .help("give exceptions first and general rules after them, or leave the rule out");
}

// An adapter beside a model is compared as that model with the adapter in it.
void name_base(const std::string& a, const std::string& b, OpenOptions& files) {
  if (files.base) return;
  const bool of_a = is_adapter_folder(a, files), of_b = is_adapter_folder(b, files);
  if (of_a != of_b) files.base = adapter_base(of_a ? b : a, memory_names());
}

// Says which side is read as a base with an adapter in it.
void say_base(const std::string& a, const std::string& b, const OpenOptions& files, VerifyReport& report) {
  if (!files.base) return;
  for (const std::string* side : {&a, &b})
    if (is_adapter_folder(*side, files))
      report.compared_as += cat("; ", escaped(*side, 4096), " is read as ", escaped(files.base->path(), 4096),
                                " with the adapter in it");
}

// Hints about tensors, found with the two sides as they were compared.
struct Hints {
  bool looked = false;
  i64 beyond = 0;
  std::map<std::pair<Kind, std::string>, std::string> texts{};

  void look(const Store& a, const Store& b, const VerifyReport& report, Observer& observer) {
    Diff so_far;
    Rows(report).make(so_far);
    beyond = add_order_hints(a, b, so_far.rows, observer);
    for (DiffRow& row : so_far.rows)
      if (!row.hint.empty()) texts.emplace(std::pair(row.kind, row.name), std::move(row.hint));
    looked = true;
  }
  i64 give(std::vector<DiffRow>& rows) const {
    for (DiffRow& row : rows)
      if (auto text = texts.find({row.kind, row.name}); text != texts.end()) row.hint = text->second;
    return beyond;
  }
};

bool is_problem(const Finding& f) { return !f.warning; }

}  // namespace

std::string_view kind_name(DiffRow::Kind kind) {
  switch (kind) {
    case Kind::kOnlyA:
      return "only_a";
    case Kind::kOnlyB:
      return "only_b";
    case Kind::kShape:
      return "shape";
    case Kind::kDtype:
      return "dtype";
    case Kind::kAttribute:
      return "attribute";
    case Kind::kValues:
      return "values";
    case Kind::kCast:
      return "cast";
    case Kind::kObject:
      return "object";
    case Kind::kFile:
      return "file";
  }
  return "";
}

StatePart diff_part(std::string_view name) {
  return is_of_optimizer(name) ? StatePart::kOptimizer : part_of(name);
}

std::string DiffRow::brief(const std::string& value) const {
  constexpr std::size_t kDigits = 12;
  return at == "sha256" ? cat(value.substr(0, kDigits), "...") : value;
}

std::optional<double> DiffRow::relative_l2() const {
  return distance && distance->not_finite == 0 ? distance->relative_l2() : std::nullopt;
}

std::optional<double> DiffRow::cosine() const {
  return distance && distance->not_finite == 0 ? distance->cosine() : std::nullopt;
}

i64 Diff::tensors() const {
  auto against = std::ranges::find(report.checks, "against", &Check::name);
  return against == report.checks.end() ? 0 : against->count;
}

Tolerance ToleranceRules::of(std::string_view tensor) const {
  for (const Rule& rule : rules)
    if (glob_match(rule.glob, tensor)) return rule.within;
  return otherwise;
}

Diff diff(const std::string& a, const std::string& b, const DiffOptions& options, Observer& observer) {
  if (options.live) return diff_with_rank(a, b, options, observer);
  CompareOptions how = options.comparing;
  for (const std::string* path : {&a, &b})
    if (is_rank_dump(*path, how.opening.model.files))
      throw Error(Code::kUsage, "a dump of a live rank is compared with the model of its run")
          .file(*path)
          .help("`live` says how the rank holds it: megatron or fsdp");
  name_base(a, b, how.opening.model.files);
  how.any_type = true;
  const bool first_decides =
      options.first_decides && options.within.rules.empty() && options.within.otherwise.none();
  how.counting = {.all = true, .first_decides = first_decides, .within = [&](const std::string& name) {
                    return options.within.of(name);
                  }};
  Hints hints;
  if (!first_decides)
    how.counting.when_compared = [&](const Store& x, const Store& y, const VerifyReport& report) {
      hints.look(x, y, report, observer);
    };
  OpenPath tested{a, open_store(a, how.opening.model.files)},
      source{b, open_store(b, how.opening.model.files)};
  std::string root_a = opened_root(*tested.store, a), root_b = opened_root(*source.store, b);
  Compared compared = compare(std::move(tested), std::move(source), how, observer);
  Diff out{.report = std::move(compared.report),
           .oddities = std::move(compared.oddities),
           .root_a = std::move(root_a),
           .root_b = std::move(root_b),
           .choice = how.choice.pattern};
  say_base(a, b, how.opening.model.files, out.report);
  refuse_unmatched(options.within, out.report.compared);
  Rows(out.report, out.root_b).make(out);
  out.equal = compared.equal && out.rows.empty();
  // An object that was not compared has a problem, or its kind has no values to compare.
  out.alike = std::ranges::all_of(out.rows, &DiffRow::alike) &&
              std::ranges::none_of(out.findings, is_problem) &&
              std::ranges::none_of(out.report.checks,
                                   [](const Check& c) { return c.unseen > 0 && c.name != "objects"; });
  if (first_decides) return out;
  const i64 beyond = hints.looked ? hints.give(out.rows)
                                  : add_order_hints(a, b, how.opening.model.files, out.rows, observer);
  if (beyond > 0)
    out.report.add({.name = "hints",
                    .unit = "tensors",
                    .note = cat("not looked for in other tensors or orders: the values of ",
                                counted(beyond, "tensor"), " beyond the first 1,000 that differ much")},
                   {});
  return out;
}

}  // namespace mckpt::impl
