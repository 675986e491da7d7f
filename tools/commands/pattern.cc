// mckpt pattern: a HybridStack layer pattern explained. One of four questions is answered at a time:
//
//   PATTERN                          what does it say: layers, groups, pipeline segments, names in checkpoints
//   PATTERN --segment                is it valid as one segment
//   PATTERN --pp-size 2 --pp-rank 1  which layers does this pipeline stage run
//   --from-ratios 8,0.25,0.25        which pattern do the old arguments mean: MM*-M*M-
//
// A pattern that is refused is an answer and not an error: the byte at fault, a class for scripts, what
// helps, exit status 1.
//
//   $ mckpt pattern 'M[*E-]'
//     M[*E-]
//        ^ byte 3
//   moe_not_last_in_group: an E must be the last layer of its group
//   help: end the group after the E
#include "core/hybrid/pattern.h"
#include "core/base/error.h"
#include "core/hybrid/pattern_fault.h"
#include "core/hybrid/pattern_warnings.h"
#include "core/hybrid/segment.h"
#include "tools/answers/pattern/json.h"
#include "tools/answers/pattern/text.h"
#include "tools/commands/commands.h"
#include "tools/options/command_line.h"
#include "tools/options/of_commands/pattern_options.h"
#include "tools/options/parse_number.h"
#include "tools/render/answer_json.h"

namespace mckpt::impl {
namespace {

// The answer to every question about a pattern that is refused.
Exit answer_failure(Output& out, std::string_view pattern, const PatternFailure& failure) {
  out.json() ? write_failure_json(out, pattern, failure) : write_failure_text(out, pattern, failure);
  return Exit::kNo;
}

// The answer to "what does it say": layers, names, totals, and warnings about names that collide.
Exit answer_pattern(Output& out, const PatternOptions& o, bool verbose) {
  Checked<LayerPattern> checked = check_pattern(*o.pattern, o.chosen_dialect());
  if (const auto* failure = std::get_if<PatternFailure>(&checked))
    return answer_failure(out, *o.pattern, *failure);
  const LayerPattern& pattern = std::get<LayerPattern>(checked);
  std::vector<PatternWarning> warnings = pattern_warnings(pattern);
  if (out.json()) {
    write_pattern_json(out, pattern, warnings);
  } else {
    write_pattern_text(out, pattern, verbose);
    write_warnings_text(out, warnings);
  }
  return Exit::kOk;
}

// The answer to "is it a valid segment".
Exit answer_segment(Output& out, const PatternOptions& o, bool verbose) {
  Checked<std::vector<PatternItem>> checked = check_segment(*o.pattern, o.chosen_dialect());
  if (const auto* failure = std::get_if<PatternFailure>(&checked))
    return answer_failure(out, *o.pattern, *failure);
  const auto& items = std::get<std::vector<PatternItem>>(checked);
  out.json() ? write_segment_json(out, *o.pattern, o.chosen_dialect(), items)
             : write_segment_text(out, *o.pattern, items, verbose);
  return Exit::kOk;
}

// The answer to "what does this stage run". The MTP part is cut off: it belongs to the last stage and is not
// divided.
Exit answer_stage(Output& out, const PatternOptions& o, bool verbose) {
  StageRequest request = o.stage;
  request.pp_size = o.pp_size.value_or(1);
  request.pp_rank = o.pp_rank.value_or(0);
  std::string_view main = std::string_view(*o.pattern).substr(0, o.pattern->find('/'));
  Checked<StageLayers> checked = select_stage(main, o.chosen_dialect(), request);
  if (const auto* failure = std::get_if<PatternFailure>(&checked)) return answer_failure(out, main, *failure);
  const StageLayers& stage = std::get<StageLayers>(checked);
  std::vector<PatternWarning> warnings = stage_warnings(main, o.chosen_dialect(), request);
  if (out.json()) {
    write_stage_json(out, main, o.chosen_dialect(), stage, warnings);
  } else {
    write_stage_text(out, main, stage, request, verbose);
    write_warnings_text(out, warnings);
  }
  return Exit::kOk;
}

// The answer to "which pattern do these ratios mean"; "N,A,M" is taken apart here.
Exit answer_ratios(Output& out, const PatternOptions& o) {
  std::string_view text = *o.ratios;
  std::size_t first = text.find(','), second = text.find(',', first == text.npos ? first : first + 1);
  if (second == text.npos)
    throw Error(Code::kUsage, "--from-ratios takes a number of layers and two ratios")
        .expected("N,A,M as in 56,0.08,0.5")
        .found(cat("'", escaped(text), "'"));
  i64 layers = parse_i64(text.substr(0, first), "--from-ratios");
  if (layers > kMaxRatioLayers)
    throw Error(Code::kUsage, "--from-ratios: too many layers")
        .expected(cat("at most ", kMaxRatioLayers))
        .found(layers);
  auto ratio = [&](std::size_t begin, std::size_t end) {
    return parse_double(text.substr(begin, end - begin), "--from-ratios");
  };
  Checked<std::string> checked =
      pattern_from_ratios(layers, ratio(first + 1, second), ratio(second + 1, text.size()));
  if (const auto* failure = std::get_if<PatternFailure>(&checked)) return answer_failure(out, "", *failure);
  if (out.json()) {
    AnswerJson json(out);
    json.begin_answer("pattern", true).field("pattern", std::get<std::string>(checked));
    json.end_answer();
  } else {
    out.line(std::get<std::string>(checked));
  }
  return Exit::kOk;
}

}  // namespace

Exit pattern_command(CommandLine& line) {
  PatternOptions o;
  o.parse(line);
  Output out(line.flags());
  bool verbose = line.flags().verbose > 0;
  Exit exit = o.ratios          ? answer_ratios(out, o)
              : o.segment       ? answer_segment(out, o, verbose)
              : o.wants_stage() ? answer_stage(out, o, verbose)
                                : answer_pattern(out, o, verbose);
  out.flush();
  return exit;
}

}  // namespace mckpt::impl
