// mckpt mappings WHAT: the tables of the model families, whether a model fits its table, and what the rules
// do.
//
//   list              the families and their model types
//   show FAMILY       the rows of its table: Megatron name, rule, Hugging Face names, shapes
//   draft HF_DIR [MAP] writes a map file for a model that no family has
//   check HF_DIR [MAP] pairs every tensor with a parameter:  "qwen3_moe: 33 Megatron parameters from 45 tensors";
//                     -v lists the pairs, with the rule of each
//   draw [RULE]       the picture of a rule, item by item; without a rule, the list of pictures
#include <algorithm>

#include "core/base/error.h"
#include "hf/model_options.h"
#include "mappings/family.h"
#include "mappings/picture/picture.h"
#include "mappings/registry.h"
#include "tools/answers/mappings/check.h"
#include "tools/answers/mappings/draft.h"
#include "tools/answers/mappings/draw.h"
#include "tools/answers/mappings/text.h"
#include "tools/commands/commands.h"
#include "tools/options/command_line.h"
#include "tools/options/hf_model_flags.h"
#include "tools/render/output.h"

namespace mckpt::impl {

Exit mappings_command(CommandLine& line) {
  std::string what = "list", subject, map;
  HfModelFlags how;
  bool svg = false;
  std::vector<std::string> families;
  for (const Family* family : all_families()) families.emplace_back(family->name);
  std::vector<std::string> rules;
  for (const RuleExample& e : all_examples())
    for (std::string_view name : {e.rule, e.name})
      if (std::ranges::find(rules, name) == rules.end()) rules.emplace_back(name);
  line.positional("WHAT", what, "list, show, draft, check or draw")
      .choices({"list", "show", "draft", "check", "draw"});
  line.positional(
          "SUBJECT", subject,
          "the family to show, the folder of the model to draft a map for or to check, or the rule to draw")
      .words_after("list", {})
      .words_after("show", std::move(families))
      .words_after("draw", std::move(rules));
  line.positional("MAP", map,
                  "draft: the file to write (stdout without it, or for -); check: the map file to check");
  line.flag("--svg", svg, "draw one picture as SVG").common();
  how.declare(line);
  line.description(
      "Lists the model families, shows the table of one family, pairs every tensor of a model with a parameter (check; with -v, the pairs are listed), writes a first map file for a model that no family has (draft), or draws what a rule does.");
  line.example("mckpt mappings show qwen3_moe");
  line.example("mckpt mappings check Qwen3-30B-A3B");
  line.example("mckpt mappings draft Phi-3-mini phi3.json");
  line.example("mckpt mappings check Qwen3-30B-A3B -v");
  line.example("mckpt mappings draw gated_mlp");
  line.parse();
  for (const auto& [name, word] : {std::pair{"SUBJECT", &subject}, std::pair{"MAP", &map}})
    if (word->empty() && line.given(name)) throw Error(Code::kUsage, cat(name, " is empty")).found("''");
  if (svg && what != "draw") throw Error(Code::kUsage, "--svg belongs to `mappings draw`");
  if (!map.empty() && what != "draft" && what != "check")
    throw Error(Code::kUsage, cat("unexpected argument '", escaped(map), "'"));
  for (const char* name : {"--map-file", "--expert-layout"})
    if (line.given(name) && what != "check")
      throw Error(Code::kUsage, cat(name, " has a meaning only for `mappings check`"));
  if ((what == "show" || what == "check" || what == "draft") && subject.empty())
    throw Error(Code::kUsage,
                cat("`mappings ", what, "` needs ", what == "show" ? "a family" : "the folder of a model"));
  if (what == "list" && !subject.empty())
    throw Error(Code::kUsage, cat("unexpected argument '", escaped(subject), "'"));
  Output out(line.flags());
  if (svg) out.keep_lines();
  if (what == "list") write_families(out);
  if (what == "show") write_family(out, family_named(subject));
  if (what == "draw") draw_rules(out, line.flags(), subject, svg);
  if (what == "draft") draft_map_of(out, line.flags(), subject, map, line.opening());
  if (what == "check") {
    HfModelOptions reading = how.options();
    if (!map.empty() && !reading.map_file.empty())
      throw Error(Code::kUsage, "two map files are given").expected("one");
    if (!map.empty()) reading.map_file = map;
    check_model(out, line.flags(), subject, reading);
  }
  out.flush();
  return Exit::kOk;
}

}  // namespace mckpt::impl
