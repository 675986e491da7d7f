// convert to-mcore: a Hugging Face model or a sharded checkpoint into the torch_dist checkpoint that a
// Megatron run of any grid would have saved.
//
//   $ mckpt convert to-mcore Qwen3-30B-A3B ckpt --tp 2 --ep 4
//   $ mckpt convert to-mcore fsdp_ckpt ckpt --assets Qwen3-30B-A3B
//
// The options become one ToMcoreOptions; what SRC is decides the library (convert/plan/to_mcore.h).
#include "convert/plan/to_mcore.h"

#include "convert/plan/conversion.h"
#include "core/base/error.h"
#include "runtime/job/job.h"
#include "tools/commands/convert_modes.h"
#include "tools/options/base_flag.h"
#include "tools/options/checkpoint_flags.h"
#include "tools/options/command_line.h"
#include "tools/options/convert_options.h"
#include "tools/options/model_dict_flag.h"
#include "tools/options/run_flags.h"
#include "tools/process/job.h"
#include "tools/render/output.h"
#include "tools/run/conversion.h"

namespace mckpt::impl {
namespace {

// The options of the mode by subject, each with its own declarations.
struct ToMcoreFlags {
  ConvertOptions options;
  CheckpointFlags source;
  BaseFlag base;
  ModelDictFlag dict;
  bool weights_only = false;
  GridFlags grid{true};
  PipelineFlags pipeline;
  ValueFlags values{"none"};
  SpellingFlags spelling;
  std::string layers = "auto";

  void parse(CommandLine& line);
  ToMcoreOptions planning() const;
};

void ToMcoreFlags::parse(CommandLine& line) {
  options.declare(
      line,
      "a Hugging Face model, a checkpoint with its names, or one of Megatron: fsdp_dtensor, torch_dist, "
      "FSDP2 or Megatron-FSDP alone",
      "the folder for the checkpoints of a training run");
  options.declare_resume(line);
  options.declare_iteration(line, "the name of SRC's folder, or release");
  source.declare(line);
  base.declare(line);
  dict.declare(line);
  line.flag("--weights-only", weights_only, "do not copy the states of the optimizer").common();
  grid.declare_ranks(line);
  pipeline.declare(line);
  line.option("--layers HOW", layers,
              "whether all layers are one tensor: auto (as Megatron stores them for this model), stacked or "
              "indexed")
      .choices({"auto", "stacked", "indexed"});
  spelling.declare(line);
  values.declare(line);
  options.declare_casts(line);
  line.description(
      "Writes the torch_dist checkpoint that a Megatron run of this grid would have saved: the keys of "
      "megatron.core's dist_checkpointing, with common.pt and metadata.json. A run on any other grid loads "
      "it too: "
      "the grid decides only how tensors are cut into boxes and files, and what the args say; how stages "
      "divide "
      "the layers, only which file a layer is in.");
  line.description(
      "Names are those of a run with Transformer Engine's modules, Megatron's default. A run with Megatron's "
      "own modules "
      "(--transformer-impl local) has the same names in torch_dist, but for one: it looks for the norm in "
      "front of "
      "experts as mlp.linear_fc1.layer_norm_weight, and does not find pre_mlp_layernorm.weight. --spelling "
      "unfused-norms writes that name; of a torch_dist source each norm keeps its own.");
  line.description(
      "States of the optimizer of an fsdp_dtensor checkpoint are written by parameter, with the options of "
      "its groups, as "
      "a distributed optimizer saves and loads them (fully_reshardable); those of the files of ranks as an "
      "optimizer that "
      "is not distributed does. Values are kept bit for bit unless --dtype or --params-dtype says "
      "otherwise.");
  line.description("Under mpirun the ranks share the work.");
  line.example("mckpt convert to-mcore Qwen3-30B-A3B ckpt --tp 2 --ep 4");
  line.example("mckpt convert to-mcore Qwen3-30B-A3B ckpt --dry-run --json");
  line.example("mckpt convert to-mcore fsdp_ckpt ckpt --assets Qwen3-30B-A3B --weights-only --dtype bf16");
  line.parse();
  base.settle(line, {&options.source, 1});
  options.check();
}

LayerStacks stacks_of(const std::string& word) {
  if (word == "stacked") return LayerStacks::kStacked;
  return word == "indexed" ? LayerStacks::kIndexed : LayerStacks::kAuto;
}

ToMcoreOptions ToMcoreFlags::planning() const {
  return {.source = options.source,
          .target = options.target,
          .checkpoint = source.options(),
          .model_dict = dict.name(),
          .weights_only = weights_only,
          .grid = grid.grid(),
          .pipeline = pipeline.options(),
          .layers = stacks_of(layers),
          .spelling = spelling.spelling(),
          .values = values.options(),
          .iteration = options.iteration,
          .threads = options.threads,
          .rank = this_job().rank()};
}

}  // namespace

Exit convert_to_mcore(CommandLine& line) {
  ToMcoreFlags flags;
  flags.parse(line);
  auto plan = [&] {
    Conversion planned = plan_to_mcore(flags.planning());
    if (std::string text = flags.grid.note(); !text.empty()) note(line.flags(), text);
    return planned;
  };
  return run_conversion(plan, "convert", flags.options, line.flags());
}

}  // namespace mckpt::impl
