// Prints a Diff as text and JSON. Lists are cut at the numbers of rows that fit a screen; -v prints all rows.
#include "tools/answers/diff/answer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "convert/compare/compare.h"
#include "convert/compare/diff/diff.h"
#include "convert/compare/diff/groups.h"
#include "convert/compare/diff/verdict.h"
#include "core/base/error_code.h"
#include "core/base/names.h"
#include "core/base/text.h"
#include "io/json/json_writer.h"
#include "io/store/finding.h"
#include "tools/render/findings.h"
#include "tools/render/output.h"
#include "tools/render/text_table.h"

namespace mckpt::impl {
namespace {

using Kind = DiffRow::Kind;

std::string number(double value, const char* form = "%.2g") {
  char text[32];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

// "3..5 | 0..7": the numbers in the names of a kind, place by place.
std::string numbers_text(const std::vector<std::vector<i64>>& places) {
  std::string out;
  for (const std::vector<i64>& numbers : places)
    out += cat(out.empty() ? "" : " | ", ranges_text(numbers, 6));
  return out;
}

// "3 of 36: layers 3, 7..8": the numbers of the first place in which the tensors of the group differ from
// each other.
std::string group_text(const DiffGroup& g) {
  if (g.tensors == 1) return g.numbers.empty() ? "" : cat("the only one");
  std::string out = cat(with_commas(g.differ), " of ", with_commas(g.tensors));
  if (g.differ == g.tensors && g.tensors > 1) return cat("all ", with_commas(g.tensors));
  const std::string where = numbers_text(g.numbers);
  return where.empty() ? out : cat(out, ": ", where);
}

void write_groups(Output& out, const Diff& diff, bool all) {
  constexpr std::size_t kMostChanged = 12, kMostSame = 6;
  std::vector<DiffGroup> groups = diff_groups(diff);
  auto same = std::ranges::find(groups, 0, &DiffGroup::differ);
  std::size_t changed = static_cast<std::size_t>(same - groups.begin());
  TextTable table({{""}, {""}, {"", Align::kLeft, true}});
  std::size_t shown = all ? changed : std::min(changed, kMostChanged);
  for (std::size_t i = 0; i < shown; i++)
    table.row({i == 0 ? "changed" : "", escaped(groups[i].pattern), group_text(groups[i])});
  if (shown > 0) table.write(out);
  if (shown < changed)
    out.line(cat("         and ", counted(changed - shown, "more kind"), " of tensors; -v shows all"));
  std::vector<std::string> names;
  for (auto g = same; g != groups.end(); g++) names.push_back(g->pattern);
  if (!names.empty() && changed > 0)
    out.line(cat("same     ", listed(names, all ? names.size() : kMostSame)));
}

// Tensors of two types, by kind.
void write_types(Output& out, const Diff& diff, bool all) {
  constexpr std::size_t kMost = 12;
  const std::vector<TypeGroup> groups = type_groups(diff);
  const DiffCounts counts = diff_counts(diff);
  const bool one_pair = std::ranges::all_of(
      groups, [&](const TypeGroup& g) { return g.a == groups[0].a && g.b == groups[0].b; });
  if (!all && groups.size() > 1 && one_pair && counts.casts == counts.tensors())
    return out.line(
        cat("type     all ", counted(counts.casts, "tensor"), "  ", groups[0].a, " | ", groups[0].b));
  TextTable table({{""}, {""}, {""}, {"", Align::kLeft, true}});
  const std::size_t shown = all ? groups.size() : std::min(groups.size(), kMost);
  for (std::size_t i = 0; i < shown; i++) {
    const TypeGroup& g = groups[i];
    table.row({"type   ", escaped(g.tensors == 1 ? g.first : g.pattern), cat(g.a, " | ", g.b),
               g.tensors == 1 ? "" : cat(with_commas(g.tensors), " tensors: ", numbers_text(g.numbers))});
  }
  if (shown > 0) table.write(out);
  if (shown < groups.size())
    out.line(
        cat("         and ", counted(groups.size() - shown, "more kind"), " of another type; -v shows all"));
}

std::string side(const std::string& text) { return text.empty() ? "nothing" : escaped(text); }

// Tensors with other values. Returns how many were left out.
std::size_t write_values(Output& out, const Diff& diff, std::size_t most) {
  TextTable table({{"relative L2", Align::kRight},
                   {"largest", Align::kRight},
                   {"cosine", Align::kRight},
                   {"ulps", Align::kRight},
                   {"items", Align::kRight},
                   {"first", Align::kLeft},
                   {"a | b", Align::kLeft},
                   {"tensor", Align::kLeft},
                   {"", Align::kLeft, true}});
  std::size_t rows = 0;
  for (const DiffRow& r : diff.rows) {
    if (r.kind != Kind::kValues || rows++ >= most) continue;
    const std::optional<double> l2 = r.relative_l2(), cosine = r.cosine();
    std::optional<double> largest;
    if (r.distance) largest = r.distance->largest;
    table.row({l2 ? number(*l2) : "", largest ? number(*largest, "%.3g") : "",
               cosine ? number(*cosine, "%.6f") : "",
               r.distance && r.distance->most_ulps > 0 ? with_commas(r.distance->most_ulps) : "",
               r.items < 0 ? "" : with_commas(r.items), r.at,
               r.at.empty() ? "" : cat(side(r.brief(r.a)), " | ", side(r.brief(r.b))), escaped(r.name),
               cat(r.alike() ? "within the tolerance" : "",
                   r.not_finite() > 0 ? cat(with_commas(r.not_finite()), " NaN or infinite on one side") : "",
                   r.hint)});
  }
  if (rows > 0) table.write(out);
  return rows - std::min(rows, most);
}

// Everything else, in words; of each kind the first few.
std::size_t write_others(Output& out, const Diff& diff, std::size_t most) {
  std::map<Kind, std::size_t> rows;
  std::size_t hidden = 0;
  for (const DiffRow& r : diff.rows) {
    std::string line;
    switch (r.kind) {
      case Kind::kOnlyA:
        line = cat("only A   ", escaped(r.name), "  ", r.a, r.hint.empty() ? "" : "  ", r.hint);
        break;
      case Kind::kOnlyB:
        line = cat("only B   ", escaped(r.name), "  ", r.b, r.hint.empty() ? "" : "  ", r.hint);
        break;
      case Kind::kShape:
        line = cat("shape    ", escaped(r.name), "  ", r.a, " | ", r.b, r.hint.empty() ? "" : "  ", r.hint);
        break;
      case Kind::kDtype:
        line = cat("type     ", escaped(r.name), "  ", r.a, " | ", r.b, "  (values not compared)");
        break;
      case Kind::kAttribute:
        line = cat("mark     ", escaped(r.name), "  ", r.at, "  ", r.a, " | ", r.b);
        break;
      case Kind::kObject:
        line = cat("object   ", escaped(r.name), r.a.empty() && r.b.empty() ? "  " : "", escaped(r.at),
                   r.a.empty() && r.b.empty() ? "" : cat("  ", side(r.a), " | ", side(r.b)));
        break;
      case Kind::kFile:
        line = cat("file     ", escaped(r.name), r.a.empty() && r.b.empty() ? "  " : "",
                   r.at.starts_with("byte ") ? cat("differs from ", r.at, " on") : escaped(r.at),
                   r.a.empty() && r.b.empty() ? "" : cat("  ", side(r.a), " | ", side(r.b)));
        break;
      case Kind::kValues:
      case Kind::kCast:
        continue;
    }
    if (rows[r.kind]++ < most)
      out.line(line);
    else
      hidden++;
  }
  return hidden;
}

// Which checkpoint of a folder with several was taken, or where a tracker file leads.
void write_opened(Output& out, std::string_view side, std::string_view path, const std::string& root) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  if (!root.empty() && root != path)
    out.line(cat(side, " is ", escaped(path, 4096), " -> ", escaped(root, 4096)));
}

void write_equal(Output& out, const Diff& diff) {
  std::set<std::string_view> unequal;
  for (const DiffRow& r : diff.rows)
    if (r.kind == Kind::kValues) unequal.insert(r.name);
  std::vector<std::string> names = diff.report.compared;
  std::ranges::sort(names, natural_less);
  for (const std::string& name : names)
    if (!unequal.contains(name)) out.line(escaped(name));
}

// Whether problems say why objects were not compared. An object of a kind without values has a note alone.
bool has_unread_objects(const Diff& diff) {
  const VerifyReport& report = diff.report;
  for (std::size_t f = 0; f < report.findings.size(); f++)
    if (report.checks[report.check_of[f]].name == "objects" && report.findings[f].code != Code::kUnequal)
      return true;
  return false;
}

// The parts of both sides that the answer does not speak of.
void write_not_compared(Output& out, const Diff& diff) {
  i64 said = 0;  // by rows
  for (const DiffRow& r : diff.rows)
    said += r.kind == Kind::kOnlyA || r.kind == Kind::kShape || r.kind == Kind::kDtype;
  for (const Check& c : diff.report.checks) {
    if (c.name == "objects") {
      if (c.unseen > 0 && has_unread_objects(diff))
        out.line(cat("not compared: ", counted(c.unseen, "object"), "; the problems say why"));
    } else if (c.unseen > said)
      out.line(cat("not compared: ", counted(c.unseen - said, "tensor"), "; the problems say why"));
    if (!c.note.empty()) out.line(cat(c.note.starts_with("not ") ? "" : cat(c.name, ": "), c.note));
  }
  std::vector<std::string> unread;
  for (const NotRead& n : diff.report.unread)
    unread.push_back(n.reason.empty() ? n.path : cat(n.path, " (", n.reason, ")"));
  if (!unread.empty()) out.line(cat("not read: ", listed(unread, 5)));
}

}  // namespace

void write_diff_text(Output& out, const Diff& diff, const std::string& a, const std::string& b,
                     const DiffShown& how, const GlobalFlags& flags) {
  if (how.only == DiffShown::Only::kEqual) return write_equal(out, diff);
  const std::size_t most = flags.verbose > 0 ? diff.rows.size() : how.top;
  out.line(diff_verdict(diff));
  std::string how_compared = diff.report.compared_as;
  if (how_compared == kComparedByName || how_compared.starts_with(cat(kComparedByName, ";")))
    how_compared.replace(0, kComparedByName.size(), "by name");
  out.line(cat("compared: ", how_compared,
               diff.choice.empty() ? "" : "; other tensors, objects and files are not"));
  write_opened(out, "A", a, diff.root_a);
  write_opened(out, "B", b, diff.root_b);
  if (how.only == DiffShown::Only::kAll) write_groups(out, diff, flags.verbose > 0);
  constexpr std::size_t kMostOthers = 5;
  write_types(out, diff, flags.verbose > 0);
  std::size_t hidden = write_others(out, diff, flags.verbose > 0 ? most : std::min(most, kMostOthers));
  hidden += write_values(out, diff, most);
  if (hidden > 0)
    out.line(cat("and ", counted(static_cast<i64>(hidden), "row"), " more; --top N or -v shows them"));
  write_not_compared(out, diff);
}

void write_diff_json(JsonWriter& json, const Diff& diff) {
  const DiffCounts c = diff_counts(diff);
  json.field("root_a", diff.root_a).field("root_b", diff.root_b);
  json.field("equal", diff.equal).field("alike", diff.alike).field("compared", diff.report.compared_as);
  diff.choice.empty() ? json.null_field("choice") : json.field("choice", diff.choice);
  json.field("tensors", c.tensors());
  json.field("bit_equal", c.equal)
      .field("equal_values", c.equal_casts)
      .field("not_read", c.unread)
      .field("within", c.alike)
      .field("differ", c.tensors_differ())
      .field("casts", c.casts);
  json.key("groups").begin_array();
  for (const DiffGroup& g : diff_groups(diff))
    json.begin_object()
        .field("pattern", g.pattern)
        .field("tensors", g.tensors)
        .field("differ", g.differ)
        .end_object();
  json.end_array().key("rows").begin_array();
  for (const DiffRow& r : diff.rows) {
    json.begin_object().field("kind", kind_name(r.kind)).field("name", r.name).field("at", r.at);
    json.field("a", r.a).field("b", r.b);
    r.items < 0 ? json.null_field("items") : json.field("items", r.items);
    r.beyond < 0 ? json.null_field("beyond") : json.field("beyond", r.beyond);
    auto put = [&](std::string_view name, std::optional<double> value) {
      value ? json.field(name, *value) : json.null_field(name);
    };
    put("largest", r.distance ? r.distance->largest : std::nullopt);
    put("relative_l2", r.relative_l2());
    put("cosine", r.cosine());
    r.distance ? json.field("most_ulps", r.distance->most_ulps) : json.null_field("most_ulps");
    r.distance ? json.field("not_finite", r.not_finite()) : json.null_field("not_finite");
    r.hint.empty() ? json.null_field("hint") : json.field("hint", r.hint);
    r.file.empty() ? json.null_field("file") : json.field("file", r.file);
    json.end_object();
  }
  json.end_array().key("findings");
  write_findings(json, diff.findings);
  auto problems_of = [&](char side) {
    i64 count = 0;
    for (std::size_t i = 0; i < diff.findings.size(); i++)
      count += diff.sides[i] == side && !diff.findings[i].warning;
    return count;
  };
  json.key("problems_of")
      .begin_object()
      .field("a", problems_of('a'))
      .field("b", problems_of('b'))
      .end_object();
  json.key("not_compared").begin_array();
  for (const Check& check : diff.report.checks)
    if (!check.note.empty()) json.value(check.note);
  json.end_array().key("unread").begin_array();
  for (const NotRead& n : diff.report.unread) json.value(n.path);
  json.end_array();
}

}  // namespace mckpt::impl
