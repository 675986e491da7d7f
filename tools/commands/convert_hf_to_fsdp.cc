// convert hf-to-fsdp, and to-fsdp: a Hugging Face model, or a checkpoint with the model's own names, into the
// fsdp_dtensor checkpoint that a Megatron-FSDP run of any grid would have saved.
//
//   $ mckpt convert hf-to-fsdp tiny_qwen3_moe ckpt --tp 2 --dp 2 --dry-run
//   plan    45 in -> 41 out: 39 copied, 2 fused; dropped 0, invented 0
//           4 ranks (tp=2 cp=1 ep=1 etp=1 pp=1 dp=2), 53 chunks, 72.1 KiB
//
// The options become one HfToFsdpOptions, a plain struct; planning, proof and copying are the library's
// (convert/plan/hf_to_fsdp.h), running and the report are common to all modes (tools/run/conversion.h).
#include "convert/plan/hf_to_fsdp.h"

#include "convert/plan/conversion.h"
#include "core/base/text.h"
#include "runtime/job/job.h"
#include "tools/commands/convert_modes.h"
#include "tools/options/base_flag.h"
#include "tools/options/checkpoint_flags.h"
#include "tools/options/command_line.h"
#include "tools/options/convert_options.h"
#include "tools/options/hf_run_flags.h"
#include "tools/options/model_dict_flag.h"
#include "tools/process/job.h"
#include "tools/render/output.h"
#include "tools/run/conversion.h"

namespace mckpt::impl {
namespace {

// The options of the mode by subject, each with its own declarations.
struct HfToFsdpFlags {
  ConvertOptions options;
  std::optional<std::string> assets;
  AcceptFlag accept;
  HfRunFlags run{"none"};
  BaseFlag base;
  ModelDictFlag dict;

  void parse(CommandLine& line);
  HfToFsdpOptions planning() const;
};

void HfToFsdpFlags::parse(CommandLine& line) {
  options.declare(
      line,
      "the folder of a Hugging Face model, or a checkpoint with the model's own names: torch DCP of FSDP2, "
      "accelerate or torchtitan, files of ranks (verl, DeepSpeed ZeRO), .pt",
      "the folder for the checkpoints of a training run; the result is DST/release");
  options.declare_resume(line);
  options.declare_iteration(line, "DST/release");
  line.option("--assets HF_DIR", assets,
              "folder with the config.json of a checkpoint with the model's own names, where the training "
              "framework put none beside it")
      .common();
  accept.declare(line);
  run.declare(line);
  base.declare(line);
  dict.declare(line);
  options.declare_casts(line);
  line.description(
      "Writes the checkpoint that a Megatron-FSDP run of this grid would have saved: each rank's chunks in a "
      "file of their own, under the keys of fsdp_dtensor.");
  line.description(
      "Values are kept bit for bit unless --dtype or --params-dtype says otherwise. A real run with fp32 "
      "main weights saves what --params-dtype auto --dtype fp32 writes.");
  line.description(
      "Of the checkpoint of a training run the tensors of the model are taken; its optimizer states are left "
      "out, "
      "and named.");
  line.description("Under mpirun the ranks share the work.");
  const std::string& name = line.command();
  line.example(cat("mckpt ", name, " Qwen3-30B-A3B ckpt --tp 2 --ep 4"));
  line.example(cat("mckpt ", name, " global_step_100/actor ckpt --tp 2 --dp 4"));
  line.example(cat("mpirun -n 8 mckpt ", name, " Qwen3-30B-A3B ckpt --tp 2 --dp 4"));
  line.parse();
  base.settle(line, {&options.source, 1});
  options.check();
}

// Throws kUsage for values that are not one of the choices, kBadGrid for a grid that is not valid.
HfToFsdpOptions HfToFsdpFlags::planning() const {
  // g++ 13 destroys members of a braced list twice if a later one throws.
  HfToFsdpOptions how;
  how.source = options.source, how.target = options.target;
  how.assets = assets, how.accept = accept.codes();
  how.model_dict = dict.name();
  how.model = run.model.options();
  how.grid = run.grid.grid();
  how.fsdp = run.fsdp.setup(how.grid), how.frozen = run.fsdp.frozen();
  how.spelling = run.spelling.spelling();
  how.values = run.values.options();
  how.hybrid_pattern = run.pattern.text();
  how.iteration = options.iteration;
  how.threads = options.threads, how.memory_bytes = options.memory_bytes;
  how.rank = this_job().rank();
  return how;
}

}  // namespace

Exit convert_hf_to_fsdp(CommandLine& line) {
  HfToFsdpFlags flags;
  flags.parse(line);
  auto plan = [&] {
    Conversion planned = plan_hf_to_fsdp(flags.planning());
    if (std::string text = flags.run.grid.note(); !text.empty()) note(line.flags(), text);
    return planned;
  };
  return run_conversion(plan, "convert", flags.options, line.flags());
}

}  // namespace mckpt::impl
