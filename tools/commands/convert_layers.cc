// convert group, ungroup, hybrid-to-gpt, gpt-to-hybrid: the layers of a checkpoint under the names that a
// model of another form has for them.
//
//   ungroup          [*-]M  ->  *-M         decoder.layers.0.mlp.*        ->  decoder.layers.1.mlp.*
//   group            *-M    ->  [*-]M       the way back
//   hybrid-to-gpt    *-*-   ->  2 layers    decoder.layers.3.mlp.*        ->  layer 1 of decoder.layers.mlp.*
//   gpt-to-hybrid    2 layers  ->  *-*-     the way back
//
// The four modes share one struct of options; `way` says which of them are declared.
#include "convert/plan/relayer.h"

#include <vector>

#include "convert/plan/conversion.h"
#include "runtime/job/job.h"
#include "tools/commands/convert_modes.h"
#include "tools/options/checkpoint_flags.h"
#include "tools/options/command_line.h"
#include "tools/options/convert_options.h"
#include "tools/process/job.h"
#include "tools/run/conversion.h"

namespace mckpt::impl {
namespace {

using GroupNames = RelayerOptions::GroupNames;
using GptLayers = RelayerOptions::GptLayers;

struct LayerWayText {
  const char *pattern_help, *description;
  std::vector<const char*> examples;
};

// The help texts of the four ways, in the order of LayerWay: the help of --pattern, the description, the
// examples.
const LayerWayText& text_of(LayerWay way) {
  static const LayerWayText kTexts[] = {
      {"the pattern of SRC, with its groups; by default the pattern in the args of SRC",
       "A hybrid model with groups, such as [*-]M, stores the layers of a group under one number: as "
       "decoder.layers.0.mlp.* in torch_dist, as decoder.layers.0.layers.1.mlp.* in fsdp_dtensor. The result "
       "is the checkpoint of the same model without brackets, *-M, in which every layer has its own number: "
       "decoder.layers.1.mlp.*.",
       {"mckpt convert ungroup ckpt ckpt_flat", "mckpt convert ungroup ckpt ckpt_flat --weights-only",
        "mckpt convert ungroup ckpt/iter_0001000 out --pattern 'M[M*-]|[M*-]' --dry-run"}},
      {"the pattern that the result has, with groups",
       "The inverse of `convert ungroup`: the layers of SRC become the groups of --pattern. --keys says how "
       "groups are named: logical is decoder.layers.0.mlp.*, as a Transformer model names its layers and as "
       "torch_dist stores groups; member is decoder.layers.0.layers.1.mlp.*, as fsdp_dtensor stores them. "
       "SRC may already have groups, under names of the other kind.",
       {"mckpt convert group ckpt_flat ckpt --pattern '[*-]M[*-]'",
        "mckpt convert group ckpt_flat ckpt --pattern '[*-]M[*-]' --dry-run",
        "mckpt convert group ckpt out --pattern '[*-][*-]' --keys logical"}},
      {"the pattern of SRC; by default the pattern in the args of SRC",
       "Layer i of a GPT model is a pair of layers of the hybrid model: its i-th * and its i-th - or E. The "
       "pattern must have as many * as - or E, and no other layers than M. torch_dist stacks the layers of a "
       "GPT model in one tensor; --layers indexed keeps them apart, as models with unlike layers store them.",
       {"mckpt convert hybrid-to-gpt ckpt gpt", "mckpt convert hybrid-to-gpt ckpt gpt --layers indexed",
        "mckpt convert hybrid-to-gpt ckpt gpt --pattern 'M*-M*-' --without-mixers"}},
      {"the pattern that the result has: one * and one - or E for each layer of SRC",
       "A layer of a GPT model becomes two layers of the hybrid model, attention and MLP: layer i becomes "
       "the i-th * and the i-th - or E of --pattern. With groups, '[*-][*-]', the result is the checkpoint "
       "of a grouped model.",
       {"mckpt convert gpt-to-hybrid gpt ckpt --pattern '*-*-*-'",
        "mckpt convert gpt-to-hybrid gpt ckpt --pattern '*-*-*-' --norms fused",
        "mckpt convert gpt-to-hybrid gpt ckpt --pattern 'M*-M*-' --without-mixers"}},
  };
  return kTexts[static_cast<int>(way)];
}

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
  options.declare(
      line, "a torch_dist or fsdp_dtensor checkpoint: the folder of a training run, or one iteration of it",
      "the folder for the checkpoints of the new training run");
  options.declare_resume(line);
  line.option("--pattern|--hybrid-pattern PATTERN", planning.pattern, text.pattern_help).common();
  if (planning.way == LayerWay::kGroup || planning.way == LayerWay::kToHybrid)
    line.option("--keys NAMES", keys,
                "how groups are named: auto (as the format of SRC stores them), logical or member")
        .choices({"auto", "logical", "member"})
        .common();
  if (planning.way == LayerWay::kToGpt)
    line.option(
            "--layers FORM", layers,
            "stacked: one tensor for all layers; indexed: one for each layer; auto: as GPT models store them")
        .choices({"auto", "stacked", "indexed"})
        .common();
  if (planning.way == LayerWay::kToGpt)
    line.flag("--without-mixers", planning.how.without_mixers,
              "drop the M layers, which a GPT model does not have")
        .common();
  if (planning.way == LayerWay::kToHybrid)
    line.flag("--without-mixers", planning.how.without_mixers,
              "write a result without the M layers, which the training run has to initialise")
        .common();
  if (planning.way == LayerWay::kToGpt || planning.way == LayerWay::kToHybrid)
    line.option("--norms PLACE", norms,
                "norms of * and - layers: fused (in the linear layer after them, as in hybrid models), apart "
                "(in the layer) or keep")
        .choices({"keep", "fused", "apart"})
        .common();
  line.flag("--weights-only", planning.how.weights_only, "do not copy the states of the optimizer").common();
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
  planning.files = line.opening();
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
