// mckpt diff A B [GLOB]: what is different in two checkpoints of any formats, grids and data types.
//
//   3 of 291 tensors differ, 288 are bit-equal; the largest relative difference is 2.1e-3 in model.norm...
//
// The comparison is the library's (convert/compare/diff/diff.h). Exit status 0: equal, or all within the
// tolerances; 1: not.
#include "convert/compare/diff/diff.h"

#include "convert/asked/compare.h"
#include "convert/compare/diff/tolerance_text.h"
#include "core/base/error.h"
#include "io/file/parallel.h"
#include "io/file/source_stamps.h"
#include "options/fields.h"
#include "page/html/pages.h"
#include "page/picture_file.h"
#include "tools/answers/diff/answer.h"
#include "tools/commands/commands.h"
#include "tools/options/choice.h"
#include "tools/options/command_line.h"
#include "tools/options/field_flags.h"
#include "tools/render/answer_json.h"
#include "tools/render/findings.h"
#include "tools/render/output.h"
#include "tools/run/shown_work.h"

namespace mckpt::impl {
namespace {

// Tells the faults of either side under its name, and the faults of both under the name of the first.
void tell_of_sides(const GlobalFlags& flags, const Diff& found, const std::string& a, const std::string& b) {
  std::vector<Finding> of_a, of_b;
  for (std::size_t i = 0; i < found.findings.size(); i++)
    (found.sides[i] == 'b' ? of_b : of_a).push_back(found.findings[i]);
  tell_findings(flags, of_a, a);
  tell_findings(flags, of_b, b);
}

struct ToleranceFlags {
  double rtol = 0, atol = 0;
  i64 max_ulp = 0;
  std::vector<std::string> rules;

  void declare(CommandLine& line) {
    line.heading("Tolerance");
    line.option("--rtol X", rtol, "items are alike if |a - b| <= atol + X * |b|").common();
    line.option("--atol X", atol, "the other part of it; 0 by default").common();
    line.option("--max-ulp N", max_ulp, "or if they are at most N floats of the type apart").common();
    line.option(
        "--tol-rule GLOB=TOLERANCE", rules,
        "for tensors of these names, instead of the three above: rtol:X, atol:X, ulp:N or several with commas between; the first GLOB that matches decides");
  }
  static void check(const char* flag, double value) {
    if (!is_tolerance(value))
      throw Error(Code::kUsage, cat(flag, " is not a tolerance"))
          .expected("a finite number, 0 or more")
          .found(value);
  }
  // Throws kUsage.
  ToleranceRules read() const {
    check("--rtol", rtol), check("--atol", atol), check("--max-ulp", static_cast<double>(max_ulp));
    ToleranceRules out{.otherwise = {.absolute = atol, .relative = rtol, .ulps = max_ulp}};
    for (const std::string& rule : rules) {
      if (rule.find('=') == rule.npos)
        throw Error(Code::kUsage, "a rule for tolerances has no GLOB")
            .expected("GLOB=rtol:X")
            .found(escaped(rule));
      add_tolerance(out, rule);
    }
    return out;
  }
};

DiffShown::Only only_of(const std::string& word) {
  if (word == "changed") return DiffShown::Only::kChanged;
  return word == "equal" ? DiffShown::Only::kEqual : DiffShown::Only::kAll;
}

}  // namespace

Exit diff_command(CommandLine& line) {
  std::string a, b, only = "all";
  i64 top = 20;
  mckpt::DiffOptions reading;
  reading.threads = default_threads();
  line.positional("A", a, "a checkpoint: a file or folder of any format").required();
  line.positional("B", b, "the other one").required();
  ChosenOfTwo chosen;
  chosen.declare(line);
  ToleranceFlags tolerance;
  tolerance.declare(line);
  line.heading("Answer");
  line.option("--only WHICH", only,
              "all; changed: tensors without the kinds of tensors; equal: the names of equal tensors")
      .choices({"all", "changed", "equal"})
      .common();
  line.option("--top N", top, "how many tensors are listed; 20 by default, -v lists all").common();
  FieldFlags flags_of_reading(line);
  fields(reading, flags_of_reading);
  line.description(
      "Compares two checkpoints of any formats, grids and data types: names, shapes, types, values, objects and files. Where their names differ, one is compared with what converting the other would write. Another type is a difference by itself; values of two types are compared in one that has all values of both. Exit status: 0 equal, or all values within the tolerances and no other difference; 1 not. With -q nothing is printed.");
  line.description(
      "Where one side is the folder of a PEFT adapter (LoRA), the other side is its base, unless --base names another one: what is compared is the base with the adapter merged.");
  line.example("mckpt diff ckpt Qwen3-30B-A3B");
  line.example("mckpt diff model.safetensors model.pt --html change.html");
  line.example("mckpt diff Qwen3-0.6B Qwen3-30B-A3B --max-ulp 1 --only changed");
  line.example("mckpt diff Qwen3-30B-A3B adapter");
  line.example("mckpt diff ckpt Qwen3-30B-A3B '*layers.0.*'");
  line.example("mckpt diff rank1.json Qwen3-30B-A3B --as megatron --tp 2");
  line.parse();
  chosen.settle(a, b);
  FieldsOfEveryCommand of_every_command(line);
  fields(reading, of_every_command);
  const std::string& html = reading.html;
  if (!html.empty()) check_page_path(html);
  if (only == "equal" && line.given("--top"))
    throw Error(Code::kUsage, "--top is about tensors that differ, and --only equal lists the others");
  if (top < 0) throw Error(Code::kUsage, "--top is a number of rows").expected("0 or more").found(top);

  DiffOptions how = diff_options(reading, {{a, b}, line.opening().helper_folders});
  how.within = tolerance.read();
  how.comparing.choice = chosen.choice;
  const GlobalFlags& flags = line.flags();
  how.first_decides = flags.quiet && !flags.json && html.empty();
  ShownWork work(flags);
  Diff found = tell_damage(flags, [&] { return diff(a, b, how, work); });
  check_unchanged(how.comparing.opening.model.files);
  for (const Oddities& o : found.oddities) tell_findings(flags, o.findings, o.root);
  if (!flags.json) tell_of_sides(flags, found, a, b);
  if (!html.empty()) write_picture(html, diff_page(found, a, b));
  Output out(flags);
  if (out.json()) {
    AnswerJson json(out);
    json.begin_answer("diff", found.alike).field("a", a).field("b", b);
    write_diff_json(json, found);
    json.end_answer();
  } else if (!flags.quiet) {
    write_diff_text(out, found, a, b, {only_of(only), static_cast<std::size_t>(top)}, flags);
  }
  out.flush();
  if (!html.empty()) note(flags, cat("page    ", escaped(html, 4096)));
  return found.alike ? Exit::kOk : Exit::kNo;
}

}  // namespace mckpt::impl
