// convert hf-to-fsdp, and to-fsdp: a Hugging Face model, a checkpoint with the model's own names, or one of
// Megatron, into the fsdp_dtensor checkpoint that a Megatron-FSDP run of any grid would have saved.
//
//   $ mckpt convert hf-to-fsdp tiny_qwen3_moe ckpt --tp 2 --dp 2 --dry-run
//   plan    45 in -> 41 out: 39 copied, 2 fused; dropped 0, invented 0
//           4 ranks (tp=2 cp=1 ep=1 etp=1 pp=1 dp=2), 53 chunks, 72.1 KiB
//
// The options become one ToFsdpOptions, a plain struct; planning, proof and copying are the library's
// (convert/plan/reshard/to_fsdp.h), running and the report are common to all modes (tools/run/conversion.h).
#include "convert/plan/reshard/to_fsdp.h"

#include "convert/plan/conversion.h"
#include "core/base/text.h"
#include "runtime/job/job.h"
#include "tools/commands/convert_modes.h"
#include "tools/options/base_flag.h"
#include "tools/options/command_line.h"
#include "tools/options/convert_options.h"
#include "tools/options/model_dict_flag.h"
#include "tools/options/reshard_flags.h"
#include "tools/options/run_flags.h"
#include "tools/process/job.h"
#include "tools/render/output.h"
#include "tools/run/conversion.h"

namespace mckpt::impl {
namespace {

// The options of the mode by subject, each with its own declarations.
struct ToFsdpFlags {
  bool model_alone = false;  // hf-to-fsdp
  ConvertOptions options;
  ReshardFlags source;
  GridFlags grid;
  FsdpFlags fsdp;
  std::vector<std::string> modules;
  SpellingFlags spelling;
  PatternFlag pattern;
  ValueFlags values{"none"};
  BaseFlag base;
  ModelDictFlag dict;

  void declare_source(CommandLine& line);
  void parse(CommandLine& line);
  ToFsdpOptions planning() const;
};

// What SRC may be. hf-to-fsdp is to-fsdp with a model as SRC.
void ToFsdpFlags::declare_source(CommandLine& line) {
  const std::string models =
      "the folder of a Hugging Face model, or a checkpoint with the model's own names: torch DCP of FSDP2, "
      "accelerate or torchtitan, files of ranks (verl, DeepSpeed ZeRO), .pt";
  options.declare(
      line,
      model_alone ? models
                  : "a Hugging Face folder; a checkpoint with the model's own names (FSDP2, accelerate, torchtitan, "
                    "verl, DeepSpeed, .pt); or one of Megatron (torch_dist, mp_rank_*, fsdp_dtensor, "
                    "Megatron-FSDP alone)",
      cat("the folder for the checkpoints of a training run", model_alone ? "; the result is DST/release" : ""));
  options.declare_resume(line);
  options.declare_iteration(line, model_alone ? "DST/release" : "the name of Megatron's SRC, or release");
  if (model_alone)
    return source.declare_of_model(line,
                                   "folder with the config.json of a checkpoint with the model's own names, where "
                                   "the training framework put none beside it");
  source.declare_of_fsdp(
      line, "of a checkpoint: folder of the original model, or of its config.json, where there is none beside it");
}

void ToFsdpFlags::parse(CommandLine& line) {
  const std::string& name = line.command();
  model_alone = name == "convert hf-to-fsdp";
  declare_source(line);
  grid.declare(line);
  fsdp.declare(line);
  if (!model_alone)
    line.option("--fsdp-module GLOB", modules,
                "with --any-model and --engine v2: modules that are FSDP units, by their names, as in 'blocks.*'");
  spelling.declare(line);
  pattern.declare(line);
  values.declare(line);
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
      "Of a checkpoint with the model's own names the tensors of the model are taken; its optimizer states are "
      "left out, and named.");
  if (!model_alone)
    line.description(
        "A checkpoint of Megatron is written with its optimizer states and objects, in the types and with the "
        "spelling that it has. mckpt convert reshard keeps its format.");
  line.description("Under mpirun the ranks share the work.");
  line.example(cat("mckpt ", name, " Qwen3-30B-A3B ckpt --tp 2 --ep 4"));
  line.example(cat("mckpt ", name, " global_step_100/actor ckpt --tp 2 --dp 4"));
  if (!model_alone) line.example(cat("mckpt ", name, " torch_dist_ckpt ckpt --assets Qwen3-30B-A3B --dp 8"));
  line.example(cat("mpirun -n 8 mckpt ", name, " Qwen3-30B-A3B ckpt --tp 2 --dp 4"));
  line.parse();
  base.settle(line, {&options.source, 1});
  options.check();
  static_cast<void>(source.options());  // throws for flags that exclude each other
}

// Throws kUsage for values that are not one of the choices, kBadGrid for a grid that is not valid.
ToFsdpOptions ToFsdpFlags::planning() const {
  // g++ 13 destroys members of a braced list twice if a later one throws.
  ToFsdpOptions out;
  HfToFsdpOptions& how = out.model;
  how.source = options.source, how.target = options.target;
  how.model_dict = dict.name();
  how.grid = grid.grid();
  how.fsdp = fsdp.setup(how.grid), how.frozen = fsdp.frozen();
  how.spelling = spelling.spelling();
  how.values = values.options();
  how.hybrid_pattern = pattern.text();
  how.iteration = options.iteration;
  how.threads = options.threads;
  how.rank = this_job().rank();
  out.from = source.options();
  out.modules = UnitModules(modules);
  out.model_alone = model_alone;
  return out;
}

}  // namespace

Exit convert_hf_to_fsdp(CommandLine& line) {
  ToFsdpFlags flags;
  flags.parse(line);
  auto plan = [&] {
    Conversion planned = plan_to_fsdp(flags.planning());
    if (std::string text = flags.grid.note(); !text.empty()) note(line.flags(), text);
    return planned;
  };
  return run_conversion(plan, "convert", flags.options, line.flags());
}

}  // namespace mckpt::impl
