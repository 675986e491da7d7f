// Declares the options of `mckpt pattern` with their help, and refuses combinations that ask two questions.
#include "tools/options/of_commands/pattern_options.h"

#include "core/base/error.h"
#include "tools/options/command_line.h"

namespace mckpt::impl {
namespace {

void declare(CommandLine& line, PatternOptions& o) {
  line.description(
      "A pattern has one symbol for each layer: M Mamba, G gated delta net, * attention, D sparse and + latent attention, - dense MLP, E mixture of experts. A | separates pipeline segments, a / separates MTP parts, and in the grouped dialect [ ] enclose layers that share one index in checkpoint keys.");
  line.on_unknown_option("a pattern that begins with - follows --, as in: mckpt pattern -- '-*-*'");
  line.positional("PATTERN", o.pattern, "the pattern; a pattern that begins with - must follow --");
  line.option("--dialect NAME", o.dialect, "grouped (default) or flat, which has no brackets")
      .choices({"flat", "grouped"})
      .common();
  line.flag("--segment", o.segment, "read PATTERN as one pipeline segment, without | and /").common();
  line.heading("One pipeline stage");
  line.option("--pp-size|--pipeline-model-parallel-size", o.pp_size, "pipeline size; default 1").common();
  line.option("--pp-rank", o.pp_rank, "pipeline rank; default 0").common();
  line.option("--vp-stage", o.stage.vp_stage, "virtual pipeline stage of the rank").common();
  line.option("--first-stage-layers|--decoder-first-pipeline-num-layers", o.stage.first_stage_layers,
              "layers of the first stage; only without |");
  line.option("--last-stage-layers|--decoder-last-pipeline-num-layers", o.stage.last_stage_layers,
              "layers of the last stage; only without |");
  line.heading("Instead of PATTERN");
  line.option("--from-ratios N,A,M", o.ratios, "the pattern of N layers, ratio A attention, ratio M MLP")
      .common();
  line.example("mckpt pattern '[*-]M|[*E]-/*M'");
  line.example("mckpt pattern 'M-M-|M-M*-' --pp-size 2 --pp-rank 1");
  line.example("mckpt pattern --dialect flat -- '-*-*'");
  line.example("mckpt pattern --from-ratios 56,0.08,0.5");
}

// Refuses combinations of options that ask two questions, or none.
void check_usage(const PatternOptions& o) {
  if (!o.pattern && !o.ratios) throw Error(Code::kUsage, "a PATTERN is missing, or --from-ratios");
  if (o.pattern && o.ratios) throw Error(Code::kUsage, "PATTERN and --from-ratios exclude each other");
  if (o.segment && o.wants_stage())
    throw Error(Code::kUsage,
                "--segment is for one segment, but the stage options are for a whole pattern: leave one out");
  if (!o.pattern && (o.segment || o.wants_stage()))
    throw Error(Code::kUsage, "--segment and the stage options need a PATTERN");
}

}  // namespace

void PatternOptions::parse(CommandLine& line) {
  declare(line, *this);
  line.parse();
  check_usage(*this);
}

}  // namespace mckpt::impl
