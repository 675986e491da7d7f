// The page of a checkpoint: facts, findings, shard map, sizes, values.
#include <cmath>
#include <cstdio>

#include "core/base/text.h"
#include "io/json/json_writer.h"
#include "io/store/soundness.h"
#include "io/store/state_part.h"
#include "page/data/checkpoint_picture.h"
#include "page/html/pages.h"
#include "page/html/shell.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kMostFindings = 200;

// Six digits are more than a person reads, and half of what the page would take otherwise.
void write_number(JsonWriter& json, double value) {
  if (!std::isfinite(value)) return static_cast<void>(json.value(value));
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  json.literal(text);
}

void write_findings(JsonWriter& json, const std::vector<Finding>& findings) {
  json.begin_array();
  std::size_t written = 0;
  for (const bool warning : {false, true})
    for (const Finding& f : findings) {
      if (f.warning != warning || written++ >= kMostFindings) continue;
      json.begin_object()
          .field("kind", finding_kind(f))
          .field("warning", f.warning)
          .field("text", finding_text(f));
      if (!f.help.empty()) json.field("help", f.help);
      json.end_object();
    }
  json.end_array();
}

void write_amount(JsonWriter& json, std::string_view name, const Amount& a) {
  json.begin_object()
      .field("name", name)
      .field("tensors", a.tensors)
      .field("items", a.items)
      .field("bytes", a.bytes)
      .end_object();
}

void write_summary(JsonWriter& json, const CheckpointPicture& p) {
  json.begin_object().field("tensors", p.summary.all.tensors).field("items", p.summary.all.items);
  json.field("bytes", p.summary.all.bytes).field("files", p.files).field("ranks", p.ranks);
  json.key("parts").begin_array();
  for (StatePart part : {StatePart::kModel, StatePart::kOptimizer, StatePart::kOther})
    if (p.summary.part(part).tensors > 0) write_amount(json, part_name(part), p.summary.part(part));
  json.end_array().key("dtypes").begin_array();
  for (const StoreSummary::OfType& t : p.summary.dtypes) write_amount(json, dtype_name(t.dtype), t.amount);
  json.end_array().end_object();
}

}  // namespace

void write_sizes(JsonWriter& json, const SizeTree& tree) {
  json.begin_object().field("root", tree.root).field("cut", tree.cut).key("nodes").begin_array();
  for (const SizeNode& n : tree.nodes) {
    json.begin_array().value(n.bytes).value(n.items).value(n.tensors).value(module_part_name(n.part));
    if (!n.children.empty()) {
      json.begin_array();
      for (const auto& [label, number] : n.children) json.value(label).value(number);
      json.end_array();
    }
    json.end_array();
  }
  json.end_array().end_object();
}

void write_values(JsonWriter& json, const LayerValues& values) {
  json.begin_object().field("kinds_left_out", values.kinds_left_out).key("kinds").begin_array();
  for (const ValueKind& kind : values.kinds) {
    json.begin_object().field("section", kind.section).field("kind", kind.kind).field("dtype", kind.dtype);
    json.field("part", module_part_name(kind.part)).key("cells").begin_array();
    for (const ValueCell& c : kind.cells) {
      json.begin_array()
          .value(c.layer)
          .value(c.tensors)
          .value(c.numbers)
          .value(c.finite)
          .value(c.zeros)
          .value(c.nans);
      json.value(c.infinities);
      for (double number : {c.min, c.max, c.mean, c.deviation, c.l2}) write_number(json, number);
      json.begin_array();
      for (double count : c.histogram) write_number(json, std::round(count));
      json.end_array().end_array();
    }
    json.end_array().end_object();
  }
  json.end_array().end_object();
}

std::string checkpoint_page(const CheckpointPicture& p) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().field("page", "checkpoint").field("mckpt", MCKPT_VERSION).field("title", p.title);
  json.field("planned", p.planned)
      .field("format", p.format)
      .field("choice", p.choice)
      .field("all_tensors", p.all_tensors);
  json.key("facts").begin_array();
  for (const auto& [name, value] : p.facts) json.begin_array().value(name).value(value).end_array();
  json.end_array();
  write_findings(json.key("findings"), p.findings);
  json.field("findings_in_all", std::ssize(p.findings));
  write_summary(json.key("summary"), p);
  write_map(json.key("map"), p.map);
  write_sizes(json.key("sizes"), p.sizes);
  json.key("values");
  p.values ? write_values(json, *p.values) : static_cast<void>(json.null());
  json.end_object();
  constexpr std::string_view kScripts[] = {"base.js",  "boxes.js",  "map.js",
                                           "sizes.js", "values.js", "checkpoint.js"};
  return html_page(cat(p.title, " - mckpt plot"), text, kScripts);
}

}  // namespace mckpt::impl
