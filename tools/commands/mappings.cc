// mckpt mappings WHAT: the tables of the model families, whether a model fits its table, and what the rules
// do.
//
//   list              the families and their model types
//   show FAMILY       the rows of its table: Megatron name, rule, Hugging Face names, shapes
//   check HF_DIR      pairs every tensor with a parameter:  "qwen3_moe: 33 Megatron parameters from 45 tensors";
//                     -v lists the pairs, with the rule of each
//   draw [RULE]       the picture of a rule, item by item; without a rule, the list of pictures
//
//   {"schema": "mckpt.mappings/1", "ok": true, "family": "qwen3_moe", "architecture": "Qwen3MoeForCausalLM",
//    "parameters": 33, "tensors": 45, "data": true, "unlike_copies": 0, "unread": []}               check --json
//
// check throws kUnaccounted, which lists what does not match.
#include "core/base/error.h"
#include "core/base/notes.h"
#include "hf/model.h"
#include "io/file/parallel.h"
#include "mappings/family.h"
#include "mappings/model/expand.h"
#include "mappings/registry.h"
#include "tools/answers/mappings_draw.h"
#include "tools/answers/mappings_text.h"
#include "tools/commands/commands.h"
#include "tools/options/command_line.h"
#include "tools/options/hf_model_flags.h"
#include "tools/render/answer_json.h"
#include "tools/render/notes.h"
#include "tools/render/output.h"

namespace mckpt::impl {
namespace {

// Opens the model, which pairs and accounts, and compares copies that are not read with the tensors that they
// should repeat; a copy that differs is a warning.
void check_model(Output& out, const GlobalFlags& flags, const std::string& path, const HfModelOptions& how) {
  HfModel m = open_hf_model(path, how);
  print_notes(flags, notes_of(m));
  const std::vector<std::string> unlike = unlike_copies(m, default_threads());
  for (const std::string& pair : unlike)
    warn(flags, cat(pair, ", but should be a copy of it; the copy is not read"));
  const ModelMap& map = *m.map;
  if (out.json()) {
    AnswerJson json(out);
    json.begin_answer("mappings", true).field("family", map.family().name);
    json.field("architecture", m.config.architecture).field("parameters", map.parameter_count());
    json.field("tensors", static_cast<i64>(map.sources().size()))
        .field("data", m.has_data())
        .field("unlike_copies", std::ssize(unlike))
        .key("unread")
        .begin_array();
    for (const UnreadTensor& u : map.unread())
      write_unread(json, map.sources()[u.tensor].name, u.of < 0 ? "" : map.sources()[u.of].name, u.reason);
    json.end_array();
    if (flags.verbose) write_pairs(json.key("pairs"), map);
    json.end_answer();
    return;
  }
  if (flags.verbose) {
    write_pairs(out, map);
    out.write("\n");
  }
  out.line(cat(map.family().name, ": ", with_commas(map.parameter_count()), " Megatron parameters from ",
               with_commas(map.sources().size()), " tensors",
               m.has_data() ? "" : " (by the config; the folder has no data)",
               map.unread().empty() ? "" : cat(", ", map.unread().size(), " of them copies or not needed")));
}

}  // namespace

Exit mappings_command(CommandLine& line) {
  std::string what = "list", subject;
  HfModelFlags how;
  bool svg = false;
  std::vector<std::string> families;
  for (const Family* family : all_families()) families.emplace_back(family->name);
  line.positional("WHAT", what, "list, show, check or draw").choices({"list", "show", "check", "draw"});
  line.positional("SUBJECT", subject,
                  "the family to show, the folder of the model to check, or the rule to draw")
      .words(std::move(families));
  line.flag("--svg", svg, "draw one picture as SVG").common();
  how.declare(line);
  line.description(
      "Lists the model families, shows the table of one family, pairs every tensor of a model with a "
      "parameter (check; with -v, the pairs are listed), or draws what a rule does.");
  line.example("mckpt mappings show qwen3_moe");
  line.example("mckpt mappings check Qwen3-30B-A3B");
  line.example("mckpt mappings check Qwen3-30B-A3B -v");
  line.example("mckpt mappings draw gated_mlp");
  line.parse();
  if (svg && what != "draw") throw Error(Code::kUsage, "--svg belongs to `mappings draw`");
  if ((what == "show" || what == "check") && subject.empty())
    throw Error(Code::kUsage,
                cat("`mappings ", what, "` needs ", what == "show" ? "a family" : "the folder of a model"));
  if (what == "list" && !subject.empty())
    throw Error(Code::kUsage, cat("unexpected argument '", escaped(subject), "'"));
  Output out(line.flags());
  if (svg) out.keep_lines();
  if (what == "list") write_families(out);
  if (what == "show") write_family(out, family_named(subject));
  if (what == "draw") draw_rules(out, line.flags(), subject, svg);
  if (what == "check") check_model(out, line.flags(), subject, how.options());
  out.flush();
  return Exit::kOk;
}

}  // namespace mckpt::impl
