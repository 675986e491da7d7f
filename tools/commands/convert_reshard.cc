// convert reshard: a sharded checkpoint, with its optimizer states, onto another grid or strategy, in the
// format that it has.
//
//   ckpt of 4 ranks (tp 2, dp 2)  --tp 4 --dp 2-->  ckpt_on_8 of 8 ranks: the same items, other chunks
//
// Six groups of options: those of every conversion (ConvertOptions), what is read (ReshardFlags), the new
// grid (GridFlags, PipelineFlags), how Megatron-FSDP packs on it (FsdpFlags), and the rows of the vocabulary
// (ValueFlags).
// Types stay, because optimizer states must match their weights bit for bit, except that --engine v2 widens
// weights to fp32.
#include "convert/plan/reshard/reshard.h"

#include "convert/keys/value_options.h"
#include "convert/plan/conversion.h"
#include "runtime/job/job.h"
#include "tools/commands/convert_modes.h"
#include "tools/options/command_line.h"
#include "tools/options/convert_options.h"
#include "tools/options/reshard_flags.h"
#include "tools/options/run_flags.h"
#include "tools/process/job.h"
#include "tools/render/output.h"
#include "tools/run/conversion.h"

namespace mckpt::impl {
namespace {

// All options of the mode, grouped by what they describe.
struct ReshardModeFlags {
  ConvertOptions options;
  ReshardFlags source;
  GridFlags grid{true};
  PipelineFlags pipeline;
  FsdpFlags fsdp;
  ValueFlags values{"none"};  // --vocab-size alone
  std::vector<std::string> modules;

  void parse(CommandLine& line);
  ReshardOptions planning() const;
};

// Flags that exclude each other are refused here, before ranks meet or files are opened.
void ReshardModeFlags::parse(CommandLine& line) {
  options.declare(
      line,
      "a sharded checkpoint: fsdp_dtensor, torch_dist, files of Megatron's ranks, or another DCP folder; the "
      "folder of a training run, or one iteration of it",
      "the folder for the checkpoints of the new training run");
  options.declare_resume(line);
  options.declare_iteration(line, "the name of SRC's folder, or release");
  source.declare(line);
  grid.declare(line);
  pipeline.declare(line);
  fsdp.declare(line);
  line.option(
      "--fsdp-module GLOB", modules,
      "with --any-model and --engine v2: modules that are FSDP units, by their names, as in 'blocks.*'");
  line.heading("Values");
  values.declare_vocab(line);
  line.description(
      "Writes the same weights, optimizer states and objects, bit for bit, as chunks of the ranks of another "
      "grid or strategy. The format of SRC stays: fsdp_dtensor, torch_dist, files of Megatron's ranks, any other "
      "DCP folder with its names. convert to-fsdp, to-mcore, to-pt and to-dcp change it.");
  line.description(
      "Files of ranks are written without optimizer states, and with states in SRC only with --weights-only. "
      "Of DCP folders with names that are not Megatron's, data-parallel ranks alone divide the rows.");
  line.description(
      "For --engine v2 the names are those of its state dict, weights are widened to fp32, and "
      "what it has no place for (args, iteration, schedules) is left out.");
  line.description("Sizes of the grid that are not given are 1, whatever grid SRC has.");
  line.description(
      "The packing of parameters into buffers follows the model's config.json (--assets), or what mckpt "
      "stored in the checkpoint. Files beside the data, such as run_config.yaml, are copied; checksums of "
      "the "
      "old data files are not.");
  line.description(
      "Rows of the vocabulary beyond vocab_size of config.json are padding. They stay where the rows divide "
      "by tp; "
      "otherwise rows of zeros are added, in the states too, or padding is dropped, and a note says so.");
  line.description("Under mpirun the ranks share the work.");
  line.example("mckpt convert reshard ckpt ckpt_on_8 --tp 4 --dp 2");
  line.example("mckpt convert reshard ckpt out --assets Qwen3-30B-A3B --ep 8 --weights-only");
  line.example("mckpt convert reshard torch_dist_ckpt out --assets Qwen3-30B-A3B --tp 2 --dp 4");
  line.example("mckpt convert reshard fsdp2_ckpt out --dp 8");
  line.parse();
  options.check();
  static_cast<void>(source.options());  // throws for flags that exclude each other
}

ReshardOptions ReshardModeFlags::planning() const {
  Grid sizes = grid.grid();
  return {.source = options.source,
          .target = options.target,
          .from = source.options(),
          .grid = sizes,
          .fsdp = fsdp.setup(sizes),
          .frozen = fsdp.frozen(),
          .modules = UnitModules(modules),
          .pipeline = pipeline.options(),
          .vocab = values.options().vocab,
          .iteration = options.iteration,
          .threads = options.threads,
          .rank = this_job().rank()};
}

}  // namespace

Exit convert_reshard(CommandLine& line) {
  ReshardModeFlags flags;
  flags.parse(line);
  auto plan = [&] {
    Conversion planned = plan_reshard(flags.planning());
    if (std::string text = flags.grid.note(); !text.empty()) note(line.flags(), text);
    return planned;
  };
  return run_conversion(plan, "convert", flags.options, line.flags());
}

}  // namespace mckpt::impl
