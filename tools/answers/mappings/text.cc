// Prints which families there are, and the rows of one with whole names.
//
//   Megatron                 rule       Hugging Face                            shape         needs
//   ...mlp.linear_fc1.weight  gated_mlp  model.layers.{L}.mlp.gate_proj.weight  [ffn hidden]  dense
//                                        model.layers.{L}.mlp.up_proj.weight    [ffn hidden]
//
// A row with several sources has a line for each. "needs" is the kind of layer, and the condition of the row.
#include "tools/answers/mappings/text.h"

#include <algorithm>
#include <map>

#include "core/base/text.h"
#include "core/fsdp/grid.h"
#include "mappings/family.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"
#include "mappings/model/run_setup.h"
#include "mappings/needs.h"
#include "mappings/registry.h"
#include "mappings/row.h"
#include "tools/render/answer_json.h"
#include "tools/render/folded_name.h"
#include "tools/render/text_table.h"

namespace mckpt::impl {
namespace {

std::string joined(std::span<const std::string_view> words) {
  std::string out;
  for (std::string_view w : words) out += cat(out.empty() ? "" : ", ", w);
  return out;
}

// One row of a family with its whole names: the prefixes of its section are put in front.
struct ShownRow {
  std::string kind, megatron;
  std::vector<std::string> sources, shapes;
  const Row* row;
};

// Families without experts share tables with families that have them: there no form of experts is known.
bool has_layers(const Family& family, const RowList& list) {
  auto by_form = [](const Row& row) { return is_expert_form(row.needs); };
  return !family.expert_forms.empty() || std::ranges::none_of(list.rows, by_form);
}

// All rows that models of the family can have, in the order of its tables. Rows that exclude each other
// (forms of experts) are all listed.
std::vector<ShownRow> shown_rows(const Family& family) {
  std::vector<ShownRow> rows;
  for (const Section& section : family.sections)
    for (const RowList& list : row_lists(section))
      for (const Row& row : has_layers(family, list) ? list.rows : std::span<const Row>()) {
        if (!family_has(family, row.needs)) continue;
        ShownRow shown{std::string(list.kind), cat(section.megatron, row.megatron), {}, {}, &row};
        for (const Source& source : row.sources) {
          if (source.name.empty()) break;
          shown.sources.push_back(cat(row.whole_names ? "" : section.hugging_face, source.name));
          shown.shapes.emplace_back(source.shape);
        }
        rows.push_back(std::move(shown));
      }
  return rows;
}

void write_row(JsonWriter& json, const ShownRow& r) {
  json.begin_object()
      .field("megatron", r.megatron)
      .field("rule", r.row->rule)
      .key("hugging_face")
      .begin_array();
  for (const std::string& name : r.sources) json.value(name);
  json.end_array().key("shapes").begin_array();
  for (const std::string& shape : r.shapes) json.value(shape);
  json.end_array()
      .field("layer", r.kind)
      .field("needs", needs_name(r.row->needs))
      .field("buffer", r.row->buffer)
      .field("fp32", r.row->fp32);
  json.end_object();
}

// Parameters that differ in numbers alone, with the tensors that they are made of, in the order of the row's
// sources.
struct Pair {
  FoldedName megatron;
  std::string_view rule;
  std::vector<FoldedName> hugging_face;
};

std::vector<Pair> pairs_of(const ModelMap& map) {
  std::vector<Pair> pairs;
  std::map<std::string, std::size_t> by_form;
  for (const ModelParameter& p : map.parameters(Grid{}, Cell{}, RunSetup{})) {
    std::string form = cat(p.row->rule, "\n", FoldedName::form(p.global_name));
    std::vector<std::string_view> sources;
    for (i32 s : p.sources)
      if (s >= 0) sources.push_back(map.sources()[s].name);
    // Parts of a tensor are one source, whose numbers differ.
    const std::size_t named =
        p.row->sources[0].in_parts() ? std::min<std::size_t>(1, sources.size()) : sources.size();
    for (std::size_t i = 0; i < named; i++) form += cat("\n", FoldedName::form(sources[i]));
    auto [at, is_new] = by_form.try_emplace(std::move(form), pairs.size());
    if (is_new) pairs.push_back({{}, p.row->rule, std::vector<FoldedName>(named)});
    Pair& pair = pairs[at->second];
    pair.megatron.add(p.global_name);
    for (std::size_t i = 0; i < sources.size(); i++)
      pair.hugging_face[std::min(i, named - 1)].add(sources[i]);
  }
  return pairs;
}

}  // namespace

void write_pairs(Output& out, const ModelMap& map) {
  using enum Align;
  TextTable table({{"Megatron", kLeft}, {"rule", kLeft}, {"Hugging Face", kLeft}});
  for (const Pair& pair : pairs_of(map))
    for (std::size_t i = 0; i < pair.hugging_face.size(); i++)
      table.row(
          {i ? "" : pair.megatron.text(), i ? "" : std::string(pair.rule), pair.hugging_face[i].text()});
  table.write(out);
}

void write_pairs(JsonWriter& json, const ModelMap& map) {
  json.begin_array();
  for (const Pair& pair : pairs_of(map)) {
    json.begin_object().field("megatron", pair.megatron.text()).field("rule", pair.rule);
    json.key("hugging_face").begin_array();
    for (const FoldedName& name : pair.hugging_face) json.value(name.text());
    json.end_array().end_object();
  }
  json.end_array();
}

void write_unread(JsonWriter& json, std::string_view name, std::string_view copy_of,
                  std::string_view reason) {
  json.begin_object().field("name", name);
  copy_of.empty() ? json.null_field("copy_of") : json.field("copy_of", copy_of);
  json.field("reason", reason).end_object();
}

void write_families(Output& out) {
  AnswerJson json(out);
  if (out.json()) {
    json.begin_answer("mappings", true).key("families").begin_array();
    for (const Family* f : all_families()) {
      json.begin_object().field("name", f->name).field("architecture", f->architecture);
      json.field("summary", f->summary).key("model_types").begin_array();
      for (std::string_view type : f->model_types) json.value(type);
      json.end_array();
      const FamilyFacts& facts = f->facts;
      json.field("examples", facts.examples)
          .field("quantised", facts.quantised)
          .field("tested", facts.tested)
          .end_object();
    }
    json.end_array();
    json.end_answer();
    return;
  }
  using enum Align;
  TextTable table({{"family", kLeft},
                   {"model_type", kLeft},
                   {"quantised as", kLeft},
                   {"compared on", kLeft},
                   {"on the hub", kLeft, true}});
  for (const Family* f : all_families()) {
    const FamilyFacts& facts = f->facts;
    table.row({std::string(f->name), joined(f->model_types), std::string(facts.quantised),
               std::string(facts.tested), std::string(facts.examples)});
  }
  table.write(out);
}

void write_family(Output& out, const Family& family) {
  std::vector<ShownRow> rows = shown_rows(family);
  AnswerJson json(out);
  if (out.json()) {
    json.begin_answer("mappings", true).field("family", family.name).key("rows").begin_array();
    for (const ShownRow& r : rows) write_row(json, r);
    json.end_array().key("unread").begin_array();
    for (const Unread& u : family.unread) write_unread(json, u.name, u.copy_of, u.reason);
    json.end_array();
    json.end_answer();
    return;
  }
  using enum Align;
  TextTable table(
      {{"Megatron", kLeft}, {"rule", kLeft}, {"Hugging Face", kLeft}, {"shape", kLeft}, {"needs", kLeft}});
  for (const ShownRow& r : rows) {
    std::string needs = r.kind;
    if (r.row->needs != Needs::kAlways) needs += cat(needs.empty() ? "" : ", ", needs_name(r.row->needs));
    for (std::size_t i = 0; i < r.sources.size(); i++)
      table.row({i ? "" : r.megatron, i ? "" : std::string(r.row->rule), r.sources[i],
                 cat("[", r.shapes[i], "]"), i ? "" : needs});
  }
  table.write(out);
  for (const Unread& u : family.unread)
    out.line(cat("not read: ", u.name, u.copy_of.empty() ? "" : ", a copy of ", u.copy_of, ": ", u.reason));
}

}  // namespace mckpt::impl
