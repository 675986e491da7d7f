// mckpt export SRC DST: a checkpoint into a Hugging Face folder. `convert fsdp-to-hf` is the same
// command under another name; only the name in its JSON answer differs.
//
//   ckpt/iter_0001000  +  names, packing, config and tokenizer of the original model  ->  out_hf
//                         (--assets, or what mckpt kept in the checkpoint)
//
// --dtype auto gives every tensor the type that it has in the original model, keep the type that is stored. A
// checkpoint with the model's own names (FSDP2, accelerate, verl, DeepSpeed) keeps its types in both cases.
#include "convert/plan/export.h"

#include "convert/keys/value_options.h"
#include "convert/plan/conversion.h"
#include "convert/plan/quantize.h"
#include "core/base/error.h"
#include "tools/commands/commands.h"
#include "tools/commands/convert_modes.h"
#include "tools/options/base_flag.h"
#include "tools/options/checkpoint_flags.h"
#include "tools/options/command_line.h"
#include "tools/options/convert_options.h"
#include "tools/options/model_dict_flag.h"
#include "tools/options/run_flags.h"
#include "tools/run/conversion.h"

namespace mckpt::impl {
namespace {

// The options of the command, and the types that they ask for.
struct ExportFlags {
  ConvertOptions options;
  CheckpointFlags checkpoint;
  BaseFlag base;
  ModelDictFlag dict;
  std::string dtype = "auto";
  ValueFlags rules{"none"};
  i64 max_shard_bytes = ExportOptions{}.max_shard_bytes;
  std::optional<std::string> quantize;

  void parse(CommandLine& line);
  ExportTypes types() const;
};

void ExportFlags::parse(CommandLine& line) {
  options.declare(line, "a checkpoint: the folder of a training run, or one iteration of it",
                  "the Hugging Face folder to make");
  options.declare_resume(line);
  checkpoint.declare(line);
  base.declare(line);
  dict.declare(line);
  line.option("--dtype TYPE", dtype,
              "data type of the tensors: auto (as in the original model; as stored, where SRC has the "
              "model's own names), "
              "keep (as stored), bf16, fp16 or fp32")
      .words({"auto", "keep", "bf16", "fp16", "fp32"})
      .common();
  rules.declare_rules(line);
  options.declare_casts(line);
  line.bytes("--max-shard-size", max_shard_bytes,
             "most bytes of tensors in one file; by default the files of the original model, where its "
             "headers are "
             "known and the tensors have the same types, else 5GB")
      .common();
  line.option("--scheme|--quantize|--to SCHEME", quantize,
              "of a Megatron checkpoint: write codes and scales; fp8-block, mxfp4, or like-source (those of "
              "--assets, with its weights)")
      .words({"like-source", "fp8-block", "mxfp4"})
      .common();
  line.description(
      "Writes a Hugging Face folder: the tensors under their original names, in their original packing and "
      "data types, and config, tokenizer and code byte for byte. Names, packing and these files are taken "
      "from --assets, or from the checkpoint itself if mckpt made it.");
  line.description(
      "The checkpoint may be of any grid, fsdp_dtensor, torch_dist or Megatron's rank files, or one with the "
      "model's own "
      "names: torch DCP of "
      "FSDP2, accelerate or torchtitan, or rank files of FSDP, verl or DeepSpeed ZeRO. Of these the config "
      "is also found where the "
      "training "
      "framework put it, types are kept, and models without a table are taken too. Under mpirun the ranks "
      "share "
      "the work.");
  const std::string& name = line.command();
  line.example(cat("mckpt ", name, " ckpt out_hf"));
  line.example(cat("mckpt ", name, " ckpt/iter_0001000 out_hf --max-shard-size 10GB"));
  line.example(cat("mckpt ", name, " ckpt out_hf --assets Qwen3-30B-A3B --dtype bf16"));
  line.example(cat("mckpt ", name, " ckpt out_hf --scheme fp8-block"));
  line.example(cat("mckpt ", name, " checkpoint-500/pytorch_model_fsdp_0 out_hf"));
  line.example(cat("mckpt ", name, " adapter out_hf --base Qwen3-30B-A3B"));
  line.parse();
  options.check();
  base.settle(line, {&options.source, 1});
}

// auto, keep, or one type for all; rules by name apply in each case.
ExportTypes ExportFlags::types() const {
  ExportTypes types{.rules = rules.options().rules};
  if (dtype == "keep") types.kind = ExportTypes::kStored;
  if (dtype == "keep" || dtype == "auto") return types;
  types.kind = ExportTypes::kGiven;
  types.given = parameter_type(dtype, "--dtype", "auto, keep");
  return types;
}

// `command` is the name that the JSON answer has.
Exit run_export(CommandLine& line, std::string_view command) {
  ExportFlags flags;
  flags.parse(line);
  std::optional<QuantizeTo> scheme;
  if (flags.quantize) scheme = quantize_scheme(*flags.quantize, "--scheme");
  auto plan = [&] {
    const ExportOptions how{.source = flags.options.source,
                            .target = flags.options.target,
                            .checkpoint = flags.checkpoint.options(),
                            .model_dict = flags.dict.name(),
                            .types = flags.types(),
                            .max_shard_bytes = flags.max_shard_bytes,
                            .original_files = !line.given("--max-shard-size"),
                            .threads = flags.options.threads};
    return scheme ? plan_quantized_export(how, *scheme) : plan_export(how);
  };
  return run_conversion(plan, command, flags.options, line.flags());
}

}  // namespace

Exit export_command(CommandLine& line) { return run_export(line, "export"); }
Exit convert_fsdp_to_hf(CommandLine& line) { return run_export(line, "convert"); }

}  // namespace mckpt::impl
