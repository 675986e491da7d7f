// convert to-pt: the files that the ranks of a Megatron run would save (--ckpt-format torch), weights only,
// of a Hugging Face model or of a sharded checkpoint.
//
//   $ mckpt convert to-pt tiny_qwen3_moe ckpt --tp 2 --pp 2 --dry-run
//   plan    45 in -> 62 out: 39 copied, 2 fused, ...; dropped 0, invented 0
//           4 files of ranks (tp=2 cp=1 ep=1 etp=1 pp=2 dp=1), 62 tensors, 20.1 KiB
#include "convert/plan/conversion.h"
#include "convert/plan/reshard/to_ranks.h"
#include "runtime/job/job.h"
#include "tools/commands/convert_modes.h"
#include "tools/options/base_flag.h"
#include "tools/options/checkpoint_flags.h"
#include "tools/options/command_line.h"
#include "tools/options/convert_options.h"
#include "tools/options/model_dict_flag.h"
#include "tools/options/run_flags.h"
#include "tools/process/job.h"
#include "tools/run/conversion.h"

namespace mckpt::impl {
namespace {

struct ToPtFlags {
  ConvertOptions options;
  CheckpointFlags checkpoint;
  BaseFlag base;
  ModelDictFlag dict;
  GridFlags grid{true};
  PipelineFlags pipeline;
  SpellingFlags spelling;
  ValueFlags values{"none"};

  void parse(CommandLine& line);
  ToRanksOptions planning() const;
};

void ToPtFlags::parse(CommandLine& line) {
  options.declare(line, "the folder of a Hugging Face model, or a sharded checkpoint",
                  "the folder for the checkpoints of a training run; the result is DST/release");
  options.declare_resume(line);
  options.declare_iteration(line, "DST/release");
  checkpoint.declare(line);
  base.declare(line);
  dict.declare(line);
  grid.declare(line);
  pipeline.declare(line);
  spelling.declare(line, true);
  values.declare(line);
  options.declare_casts(line);
  line.description(
      "Writes mp_rank_*/model_optim_rng.pt, what each rank of a Megatron run on this grid saves with "
      "--ckpt-format "
      "torch: the tensors that it holds, under their names there, and args. There are no optimizer states.");
  line.description(
      "Names are those of a run with Transformer Engine's modules, Megatron's default: norms are fused "
      "(self_attention.linear_qkv.layer_norm_weight), experts are grouped (mlp.experts.linear_fc1.weight0). "
      "A run with "
      "Megatron's own modules (--transformer-impl local) has other names: --spelling unfused-norms writes "
      "those of its "
      "norms, and those of its experts are not written. The layers of MTP have the name of Megatron-Core 0.19 "
      "(mtp_model_layer); --spelling mtp-transformer-layer writes that of versions up to 0.16 "
      "(transformer_layer).");
  line.description(
      "Values are kept bit for bit unless --dtype or --params-dtype says otherwise. Under mpirun the ranks "
      "share the "
      "work.");
  line.example("mckpt convert to-pt Qwen3-30B-A3B ckpt --tp 2 --ep 4");
  line.example("mckpt convert to-pt Qwen3-0.6B ckpt --tp 2 --pp 2 --vpp 2");
  line.example("mckpt convert to-pt fsdp_ckpt ckpt --tp 4 --iteration 1000");
  line.parse();
  base.settle(line, {&options.source, 1});
  options.check();
}

// Throws kUsage for values that are not one of the choices, kBadGrid for a grid that is not valid.
ToRanksOptions ToPtFlags::planning() const {
  return {.source = options.source,
          .target = options.target,
          .checkpoint = checkpoint.options(),
          .model_dict = dict.name(),
          .grid = grid.grid(),
          .pipeline = pipeline.options(),
          .spelling = spelling.spelling(),
          .values = values.options(),
          .iteration = options.iteration,
          .threads = options.threads,
          .rank = this_job().rank()};
}

}  // namespace

Exit convert_to_pt(CommandLine& line) {
  ToPtFlags flags;
  flags.parse(line);
  auto plan = [&] { return plan_to_ranks(flags.planning()); };
  return run_conversion(plan, "convert", flags.options, line.flags());
}

}  // namespace mckpt::impl
