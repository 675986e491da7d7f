// The page of a diff: the verdict, how much every kind of tensor changed in every layer, and the tensors, the
// most different first.
#include <algorithm>

#include "convert/compare/diff/diff.h"
#include "convert/compare/diff/verdict.h"
#include "core/base/text.h"
#include "io/json/json_writer.h"
#include "io/store/soundness.h"
#include "page/data/change_map.h"
#include "page/html/pages.h"
#include "page/html/shell.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kMostRows = 3000, kMostFindings = 200;

void write_cell(JsonWriter& json, const ChangeCell& c) {
  json.begin_array().value(c.layer).value(c.tensors).value(c.differ).value(c.within).value(c.only_a).value(
      c.only_b);
  json.value(c.header).value(c.not_finite).value(c.moved ? 1 : 0).value(c.largest).value(c.casts).end_array();
}

void write_change_map(JsonWriter& json, const ChangeMap& map) {
  json.begin_object().field("kinds_left_out", map.kinds_left_out).key("kinds").begin_array();
  for (const ChangeKind& kind : map.kinds) {
    json.begin_object()
        .field("section", kind.section)
        .field("kind", kind.kind)
        .field("part", module_part_name(kind.part));
    json.key("cells").begin_array();
    for (const ChangeCell& cell : kind.cells) write_cell(json, cell);
    json.end_array().end_object();
  }
  json.end_array().end_object();
}

void write_row(JsonWriter& json, const DiffRow& r) {
  const TensorPlace place = tensor_place(r.name);
  json.begin_object()
      .field("kind", kind_name(r.kind))
      .field("name", r.name)
      .field("at", r.at)
      .field("a", r.brief(r.a))
      .field("b", r.brief(r.b));
  json.field("place", std::string_view(place.section)).field("layer", place.layer).field("of", place.kind());
  if (r.items >= 0) json.field("items", r.items);
  if (r.beyond >= 0) json.field("beyond", r.beyond);
  if (r.distance) {
    json.field("largest", r.distance->largest).field("relative_l2", r.relative_l2());
    json.field("cosine", r.cosine()).field("ulps", r.distance->most_ulps).field("not_finite", r.not_finite());
  }
  if (!r.hint.empty()) json.field("hint", r.hint);
  if (!r.file.empty()) json.field("file", r.file);
  json.end_object();
}

}  // namespace

std::string diff_page(const Diff& diff, const std::string& a, const std::string& b) {
  const DiffCounts c = diff_counts(diff);
  std::string text;
  JsonWriter json(text);
  json.begin_object().field("page", "diff").field("mckpt", MCKPT_VERSION).field("a", a).field("b", b);
  json.field("verdict", diff_verdict(diff)).field("equal", diff.equal).field("alike", diff.alike);
  json.field("compared", diff.report.compared_as);
  json.field("tensors", c.tensors())
      .field("bit_equal", c.equal)
      .field("equal_values", c.equal_casts)
      .field("within", c.alike);
  json.field("differ", c.tensors_differ()).field("casts", c.casts);
  write_change_map(json.key("changes"), change_map(diff));
  json.field("rows_in_all", std::ssize(diff.rows)).key("rows").begin_array();
  for (std::size_t i = 0; i < std::min(diff.rows.size(), kMostRows); i++) write_row(json, diff.rows[i]);
  json.end_array().field("findings_in_all", std::ssize(diff.findings)).key("findings").begin_array();
  for (std::size_t i = 0; i < std::min(diff.findings.size(), kMostFindings); i++) {
    const Finding& f = diff.findings[i];
    json.begin_object()
        .field("kind", finding_kind(f))
        .field("warning", f.warning)
        .field("text", finding_text(f))
        .end_object();
  }
  json.end_array().key("not_compared").begin_array();
  for (const Check& check : diff.report.checks)
    if (!check.note.empty()) json.value(check.note);
  json.end_array().key("unread").begin_array();
  for (const NotRead& n : diff.report.unread) json.value(n.path);
  json.end_array().end_object();
  constexpr std::string_view kScripts[] = {"base.js", "changes.js", "diff.js"};
  return html_page(cat(a, " | ", b, " - mckpt diff"), text, kScripts);
}

}  // namespace mckpt::impl
