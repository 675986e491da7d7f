// convert to-safetensors and to-dcp: checkpoints whose tensors have the model's own names, which need no
// table of the model.
//
//   $ mckpt convert to-safetensors checkpoint-500/pytorch_model_fsdp_0 model.safetensors
//   $ mckpt convert to-dcp Qwen3-0.6B qwen_dcp --section app.model.
#include "convert/plan/own.h"
#include "convert/plan/reshard/to_dcp.h"

#include <sys/stat.h>

#include "convert/keys/value_options.h"
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
#include "tools/run/conversion.h"

namespace mckpt::impl {
namespace {

// Refuses a DST that is a folder: the result is one file, and its name is not guessed.
void refuse_folder(const std::string& target) {
  struct stat st;
  if (target.ends_with('/') && ::stat(target.c_str(), &st) != 0)
    throw Error(Code::kUsage, "DST has the name of a folder, but the result is one file")
        .found(escaped(target, 4096))
        .help(cat("name a file, such as ", escaped(target, 4096), "model.safetensors"));
  if (::stat(target.c_str(), &st) == 0 && S_ISDIR(st.st_mode))
    throw Error(Code::kUsage, "DST is a folder, but the result is one file")
        .found(escaped(target))
        .help("name a file in this folder, or use mckpt export for a folder");
}

struct ToSafetensorsFlags {
  ConvertOptions options;
  std::optional<std::string> assets;
  std::string dtype = "keep";
  ValueFlags rules{"none"};
  AcceptFlag accept;
  BaseFlag base;
  ModelDictFlag dict;

  void parse(CommandLine& line);
  OneFileOptions planning(const CommandLine& line) const;
};

void ToSafetensorsFlags::parse(CommandLine& line) {
  options.declare(line,
                  "a checkpoint with the model's own names: torch DCP, rank files of FSDP, verl or "
                  "DeepSpeed, .pt, or a Hugging Face "
                  "folder",
                  "the safetensors file to make");
  options.ranks.declare(line);
  line.option("--assets HF_DIR", assets,
              "folder with the model's config.json: says which names the model has")
      .common();
  line.option("--dtype TYPE", dtype,
              "data type of floating-point tensors, but for float8: keep (as stored), bf16, fp16 or fp32")
      .words({"keep", "bf16", "fp16", "fp32"})
      .common();
  rules.declare_rules(line);
  options.declare_casts(line);
  accept.declare(line);
  base.declare(line);
  dict.declare(line);
  line.description(
      "Writes the model's tensors into one safetensors file, under the names that they have in a Hugging "
      "Face "
      "folder. Optimizer states and objects are left out, and named. No config.json is needed; where there "
      "is "
      "one, an output layer that the model ties to the embedding is not written twice.");
  line.description("Under mpirun the ranks share the work.");
  line.example("mckpt convert to-safetensors checkpoint-500/pytorch_model_fsdp_0 model.safetensors");
  line.example("mckpt convert to-safetensors torchtitan/step-1000 model.safetensors --dtype bf16");
  line.example("mckpt convert to-safetensors hf_folder one_file.safetensors --dry-run");
  line.parse();
  options.check();
  base.settle(line, {&options.source, 1});
  refuse_folder(options.target);
}

OneFileOptions ToSafetensorsFlags::planning(const CommandLine& line) const {
  OneFileOptions out{.source = options.source,
                     .target = options.target,
                     .assets = assets,
                     .model_dict = dict.name(),
                     .accept = accept.codes(),
                     .files = line.opening(),
                     .types = {.kind = ExportTypes::kStored, .rules = rules.options().rules},
                     .threads = options.threads};
  if (dtype == "keep") return out;
  out.types.kind = ExportTypes::kGiven;
  out.types.given = parameter_type(dtype, "--dtype", "keep");
  return out;
}

struct ToDcpFlags {
  ConvertOptions options;
  std::optional<i64> dp;
  std::optional<std::string> section, assets;
  std::string dtype = "keep";
  bool weights_only = false;
  AcceptFlag accept;
  BaseFlag base;
  ModelDictFlag dict;

  void parse(CommandLine& line);
  ToDcpOptions planning(const CommandLine& line) const;
};

void ToDcpFlags::parse(CommandLine& line) {
  options.declare(line, "a DCP folder, or a checkpoint with the model's own names", "the DCP folder to make");
  options.declare_resume(line);
  line.option("--dp N", dp,
              "number of ranks that the rows are divided among; by default that of a DCP folder, else 1")
      .common();
  line.option("--section NAME", section,
              "the dict in which the tensors are, as in model. or app.model.; by default the one in SRC, and "
              "none "
              "for a Hugging Face folder")
      .common();
  line.option(
      "--assets HF_DIR", assets,
      "of files of LOCAL_STATE_DICT: folder with the model's config.json, for the shapes of the tensors");
  line.flag("--weights-only", weights_only, "of a DCP folder: do not copy the states of the optimizer")
      .common();
  line.option("--dtype TYPE", dtype,
              "data type of the model's floating-point tensors, but for float8: keep (as stored), bf16, fp16 or "
              "fp32; states of the optimizer keep theirs")
      .words({"keep", "bf16", "fp16", "fp32"})
      .common();
  options.declare_casts(line);
  accept.declare(line);
  base.declare(line);
  dict.declare(line);
  line.description(
      "Writes a folder that torch.distributed.checkpoint loads into any number of ranks, bit for bit and "
      "with "
      "names kept. A DCP folder keeps its nested dicts, its optimizer states and its objects, and one of "
      "torch_dist its "
      "common.pt and metadata.json. Of another checkpoint with the model's own names the tensors of the "
      "model are written.");
  line.description("Under mpirun the ranks share the work.");
  line.example("mckpt convert to-dcp Qwen3-0.6B qwen_dcp --dp 8");
  line.example("mckpt convert to-dcp Qwen3-0.6B qwen_dcp --section app.model.");
  line.example("mckpt convert to-dcp torchtitan/step-1000 weights --weights-only --dtype bf16");
  line.parse();
  options.check();
  base.settle(line, {&options.source, 1});
}

ToDcpOptions ToDcpFlags::planning(const CommandLine& line) const {
  std::optional<DType> type;
  if (dtype != "keep") type = parameter_type(dtype, "--dtype", "keep");
  return {.source = options.source,
          .target = options.target,
          .ranks = dp,
          .section = section,
          .assets = assets,
          .model_dict = dict.name(),
          .weights_only = weights_only,
          .dtype = type,
          .accept = accept.codes(),
          .files = line.opening(),
          .threads = options.threads,
          .rank = this_job().rank()};
}

}  // namespace

Exit convert_to_safetensors(CommandLine& line) {
  ToSafetensorsFlags flags;
  flags.parse(line);
  return run_conversion([&] { return plan_to_safetensors(flags.planning(line)); }, "convert", flags.options,
                        line.flags());
}

Exit convert_to_dcp(CommandLine& line) {
  ToDcpFlags flags;
  flags.parse(line);
  return run_conversion([&] { return plan_to_dcp(flags.planning(line)); }, "convert", flags.options,
                        line.flags());
}

}  // namespace mckpt::impl
