// mckpt mappings: the tables of the model families, whether a model fits its table, and what the rules do.
#include "io/file/parallel.h"
#include "mappings/needs.h"
#include "mappings/registry.h"
#include "tools/commands/commands.h"
#include "tools/hf_model.h"
#include "tools/render/answer_json.h"
#include "tools/render/mappings_draw.h"
#include "tools/render/text_table.h"

namespace mckpt {
namespace {

std::string joined(std::span<const std::string_view> words) {
  std::string out;
  for (std::string_view w : words) out += cat(out.empty() ? "" : ", ", w);
  return out;
}

void list_families(Output& out) {
  AnswerJson json(out);
  if (out.json()) {
    json.begin_answer("mappings", true).key("families").begin_array();
    for (const Family* f : all_families()) {
      json.begin_object().field("name", f->name).field("architecture", f->architecture);
      json.field("summary", f->summary).key("model_types").begin_array();
      for (std::string_view type : f->model_types) json.value(type);
      json.end_array().end_object();
    }
    json.end_array();
    json.end_answer();
    return;
  }
  using enum Align;
  TextTable table({{"family", kLeft}, {"model_type", kLeft}, {"architecture", kLeft}, {"", kLeft}});
  for (const Family* f : all_families())
    table.row({std::string(f->name), joined(f->model_types), std::string(f->architecture),
               std::string(f->summary)});
  table.write(out);
}

// One row of a family with its whole names.
struct ShownRow {
  std::string kind, megatron;
  std::vector<std::string> sources, shapes;
  const Row* row;
};

std::vector<ShownRow> shown_rows(const Family& family) {
  std::vector<ShownRow> rows;
  for (const Section& section : family.sections)
    for (const RowList& list : row_lists(section))
      for (const Row& row : list.rows) {
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
      .field("buffer", r.row->buffer);
  json.end_object();
}

void write_unread(JsonWriter& json, std::string_view name, std::string_view copy_of,
                  std::string_view reason) {
  json.begin_object().field("name", name);
  copy_of.empty() ? json.null_field("copy_of") : json.field("copy_of", copy_of);
  json.field("reason", reason).end_object();
}

void show_family(Output& out, const Family& family) {
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

void check_model(Output& out, const GlobalFlags& flags, const std::string& path, const HfModelFlags& how) {
  HfModel m = open_hf_model(path, how);
  tell_notes(flags, m);
  i64 unlike = warn_of_unlike_copies(flags, m, default_threads());
  const ModelMap& map = *m.map;
  if (out.json()) {
    AnswerJson json(out);
    json.begin_answer("mappings", true).field("family", map.family().name);
    json.field("architecture", m.config.architecture).field("parameters", map.parameter_count());
    json.field("tensors", static_cast<i64>(map.sources().size()))
        .field("data", m.has_data())
        .field("unlike_copies", unlike)
        .key("unread")
        .begin_array();
    for (const UnreadTensor& u : map.unread())
      write_unread(json, map.sources()[u.tensor].name, u.of < 0 ? "" : map.sources()[u.of].name, u.reason);
    json.end_array();
    json.end_answer();
    return;
  }
  out.line(cat(map.family().name, ": ", with_commas(map.parameter_count()), " Megatron parameters from ",
               with_commas(map.sources().size()), " tensors",
               m.has_data() ? "" : " (promised by the config; no data here)",
               map.unread().empty() ? "" : cat(", ", map.unread().size(), " of them copies or not needed")));
}

}  // namespace

Exit mappings_command(CommandLine& line) {
  std::string what = "list", subject;
  HfModelFlags how;
  bool svg = false;
  line.positional("WHAT", what, "list, show, check or draw").choices({"list", "show", "check", "draw"});
  line.positional("SUBJECT", subject, "for show a family, for check the folder of a model, for draw a rule");
  line.flag("--svg", svg, "draw one picture as SVG");
  how.declare(line);
  line.description(
      "Lists the model families, shows the table of one family, pairs every tensor of a model with a "
      "parameter, or draws what a rule does.");
  line.example("mckpt mappings show qwen3_moe");
  line.example("mckpt mappings check Qwen3-30B-A3B");
  line.example("mckpt mappings draw gated_mlp");
  line.parse();
  if (svg && what != "draw") throw Error(Code::kUsage, "--svg belongs to `mappings draw`");
  if ((what == "show" || what == "check") && subject.empty())
    throw Error(Code::kUsage,
                cat("`mappings ", what, "` needs ", what == "show" ? "a family" : "the folder of a model"));
  if (what == "list" && !subject.empty())
    throw Error(Code::kUsage, cat("unexpected argument '", escaped(subject), "'"));
  Output out(line.flags());
  if (what == "list") list_families(out);
  if (what == "show") show_family(out, family_named(subject));
  if (what == "draw") draw_rules(out, line.flags(), subject, svg);
  if (what == "check") check_model(out, line.flags(), subject, how);
  out.flush();
  return Exit::kOk;
}

}  // namespace mckpt
