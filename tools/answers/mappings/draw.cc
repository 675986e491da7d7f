// Prints the pictures of a rule, as text or SVG. A name may name a rule, which has one picture or several, or
// one picture:
//
//   draw qkv               the pictures qkv, qkv_output_gate, qkv_few_groups
//   draw qkv_few_groups    this picture alone
//   draw qkv --svg         the picture that has the very name of the rule
#include "tools/answers/mappings/draw.h"

#include <algorithm>

#include "core/base/error.h"
#include "mappings/picture/picture.h"
#include "tools/render/answer_json.h"
#include "tools/render/text_table.h"

namespace mckpt::impl {
namespace {

using Examples = std::vector<const RuleExample*>;

// The pictures of a rule, one picture, or all for "". Throws kUsage with the nearest name.
Examples examples_named(const std::string& name) {
  Examples found;
  std::vector<std::string_view> names;
  for (const RuleExample& e : all_examples()) {
    if (name.empty() || e.name == name || e.rule == name) found.push_back(&e);
    names.push_back(e.name);
  }
  // A picture that is called like its rule is the first of them: the rule is meant.
  if (!found.empty()) return found;
  Error e(Code::kUsage, cat("there is no rule and no picture '", escaped(name), "'"));
  if (std::string_view near = nearest(name, names); !near.empty()) e.note(cat("the nearest one is ", near));
  throw e.help("mckpt mappings draw");
}

// If there are several pictures, the one with exactly this name.
const RuleExample& only_one(const Examples& examples, const std::string& name) {
  for (const RuleExample* e : examples)
    if (e->name == name) return *e;
  if (examples.size() == 1) return *examples[0];
  throw Error(Code::kUsage, "--svg draws one picture").help("mckpt mappings draw lists their names");
}

void write_json(AnswerJson& json, const Examples& examples) {
  json.begin_answer("mappings", true).key("pictures").begin_array();
  for (const RuleExample* e : examples)
    json.begin_object()
        .field("name", e->name)
        .field("rule", e->rule)
        .field("caption", e->caption)
        .field("text", draw_text(*e))
        .end_object();
  json.end_array();
  json.end_answer();
}

// The list of all pictures: name, rule, and what it shows.
void list(Output& out, const Examples& examples) {
  using enum Align;
  TextTable table({{"picture", kLeft}, {"rule", kLeft}, {"shows", kLeft, true}});
  for (const RuleExample* e : examples)
    table.row({std::string(e->name), std::string(e->rule), std::string(e->caption)});
  table.write(out);
}

}  // namespace

void draw_rules(Output& out, const GlobalFlags& flags, const std::string& name, bool svg) {
  Examples examples = examples_named(name);
  if (svg) {
    out.write(draw_svg(only_one(examples, name)));
  } else if (out.json()) {
    AnswerJson json(out);
    write_json(json, examples);
  } else if (flags.quiet) {
    for (const RuleExample* e : examples) out.line(e->name);
  } else if (name.empty()) {
    list(out, examples);
  } else {
    for (const RuleExample* e : examples) {
      if (e != examples[0]) out.line("");
      out.write(draw_text(*e));
    }
  }
}

}  // namespace mckpt::impl
