// convert group, ungroup, hybrid-to-gpt, gpt-to-hybrid: the layers of a checkpoint under the names that a
// model of another form has for them.
//
//   ungroup          [*-]M  ->  *-M         decoder.layers.0.mlp.*        ->  decoder.layers.1.mlp.*
//   group            *-M    ->  [*-]M       the way back
//   hybrid-to-gpt    *-*-   ->  2 layers    decoder.layers.3.mlp.*        ->  layer 1 of decoder.layers.mlp.*
//   gpt-to-hybrid    2 layers  ->  *-*-     the way back
//
// The four modes share one struct of options; `way` says which of them are declared. Their help texts are in
// tools/render/layer_move_text.cc.
#include "convert/plan/relayer.h"
#include "tools/commands/convert_modes.h"
#include "tools/options/checkpoint_flags.h"
#include "tools/options/convert_options.h"
#include "tools/process/job.h"
#include "tools/render/layer_move_text.h"
#include "tools/run_conversion.h"

namespace mckpt::impl {
namespace {

using GroupNames = RelayerOptions::GroupNames;
using GptLayers = RelayerOptions::GptLayers;

// The options of the four modes as text, and the options of the planner that parse() makes of them.
struct LayerFlags {
  ConvertOptions options;
  std::string keys = "auto", layers = "auto", norms = "keep";
  AcceptFlag accept;
  RelayerOptions planning{};

  void parse(CommandLine& line);
};

// pre: planning.way is set; it decides which options exist. An option left at its default leaves the
// planner's own default.
void LayerFlags::parse(CommandLine& line) {
  const LayerWayText& text = text_of(planning.way);
  options.declare(line, "a torch_dist or fsdp_dtensor checkpoint: a run's folder, or one iteration of it",
                  "the folder of the checkpoints of the new run");
  options.declare_resume(line);
  line.option("--pattern PATTERN", planning.pattern, text.pattern_help);
  if (planning.way == LayerWay::kGroup || planning.way == LayerWay::kToHybrid)
    line.option("--keys NAMES", keys,
                "how groups are named: auto (as the format of SRC stores them), logical or member")
        .choices({"auto", "logical", "member"});
  if (planning.way == LayerWay::kToGpt)
    line.option(
            "--layers FORM", layers,
            "stacked: one tensor for all layers; indexed: one for each layer; auto: as GPT models have them")
        .choices({"auto", "stacked", "indexed"});
  if (planning.way == LayerWay::kToGpt)
    line.flag("--without-mixers", planning.how.without_mixers,
              "drop the M layers, which a GPT model does not have");
  if (planning.way == LayerWay::kToHybrid)
    line.flag("--without-mixers", planning.how.without_mixers,
              "write a result without the M layers, which the training run has to initialise");
  if (planning.way == LayerWay::kToGpt || planning.way == LayerWay::kToHybrid)
    line.option("--norms PLACE", norms,
                "norms of * and - layers: fused (in the linear layer after them, as in hybrid models), apart "
                "(in the layer) or keep")
        .choices({"keep", "fused", "apart"});
  line.flag("--weights-only", planning.how.weights_only, "do not copy the states of the optimizer");
  accept.declare(line);
  line.description(text.description);
  line.description(
      "Weights, optimizer states and objects are copied bit for bit and keep the chunks and files of the "
      "ranks that wrote them. num_layers and the pattern in the args are replaced. A key that has no place "
      "in the result is an error that names it.");
  line.description("`mckpt pattern` explains a pattern. Under mpirun the ranks share the work.");
  for (const char* example : text.examples) line.example(example);
  line.parse();
  options.check();
  if (norms != "keep") planning.how.norms = norms == "fused" ? NormPlace::kFused : NormPlace::kApart;
  if (keys != "auto") planning.keys = keys == "member" ? GroupNames::kMember : GroupNames::kLogical;
  if (layers != "auto") planning.layers = layers == "stacked" ? GptLayers::kStacked : GptLayers::kIndexed;
  planning.source = options.source, planning.target = options.target;
  planning.accept = accept.codes();
  planning.rank = this_job().rank();
}

Exit relayer(CommandLine& line, LayerWay way) {
  LayerFlags flags;
  flags.planning.way = way;
  flags.parse(line);
  return run_conversion([&] { return plan_relayer(flags.planning); }, "convert", flags.options, line.flags());
}

}  // namespace

Exit convert_ungroup(CommandLine& line) { return relayer(line, LayerWay::kUngroup); }
Exit convert_group(CommandLine& line) { return relayer(line, LayerWay::kGroup); }
Exit convert_hybrid_to_gpt(CommandLine& line) { return relayer(line, LayerWay::kToGpt); }
Exit convert_gpt_to_hybrid(CommandLine& line) { return relayer(line, LayerWay::kToHybrid); }

}  // namespace mckpt::impl
