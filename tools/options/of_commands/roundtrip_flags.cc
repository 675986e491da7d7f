// Declares and checks the options of a round trip, and makes the live model's setup from them. Checks are
// in three steps:
//
//   parse()          the line alone: kUsage before anything else happens
//   refuse_early()   the disk, in rank 0: places that may not be written
//   settle()         the job, when the ranks have met: ranks on each host, threads of each rank
#include "tools/options/of_commands/roundtrip_flags.h"

#include <algorithm>

#include "convert/dialects/fsdp/run.h"
#include "convert/keys/value_options.h"
#include "core/base/error.h"
#include "io/file/parallel.h"
#include "io/output/output_rules.h"
#include "io/output/staged_folder.h"
#include "io/output/unfinished.h"
#include "live/load/block_loader.h"
#include "live/model/model.h"
#include "live/round_trip/round_trip.h"
#include "live/save/folders.h"
#include "mappings/fsdp/layout.h"
#include "mappings/fsdp/setup.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"
#include "mappings/model/respelling.h"
#include "mappings/model/run_setup.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/same_host.h"
#include "runtime/job/job.h"
#include "tools/options/command_line.h"
#include "tools/process/job.h"

namespace mckpt::impl {

void RoundtripFlags::parse(CommandLine& line) {
  line.positional("HF_DIR", source, "the folder of a Hugging Face model, with safetensors files").required();
  line.option("--device", device, "the device that holds the model: cpu or cuda")
      .choices({"cpu", "cuda"})
      .common();
  line.option("--main-dtype", main_dtype,
              "data type of the main weights: fp32, or none for a model without main weights")
      .choices({"fp32", "none"});
  line.option("--output DIR", output,
              "export into DIR and keep it; by default, on one host, a temporary folder is used and removed")
      .common();
  line.option("--checkpoint DIR", checkpoint,
              "also save the sharded model in DIR/release, and load it from there before the export")
      .common();
  pattern_flag.declare(line);
  line.flag("--no-sync", no_sync, "do not wait until the files of --output and --checkpoint are on the disk");
  line.threads(threads, "threads of each rank; by default the ranks share the processors");
  line.option("--until PHASE", until, "stop after load, unshard or check, and export nothing")
      .choices({"load", "unshard", "check"})
      .common();
  line.flag(
          "--logits", logits,
          "also run the source and the exported folder with transformers, on the CPU, and compare the logits")
      .common();
  line.option(
      "--python PROGRAM", python,
      "with --logits: the Python that has torch and transformers; by default $MCKPT_PYTHON, or python3");
  line.flag("--trust-remote-code", trust_remote_code,
            "with --logits: run the code that comes with the model");
  line.option("--repeat N", repeat,
              "repeat loading and unsharding, and saving with --checkpoint, N times and report each");
  ranks.declare(line);
  model_flags.declare(line);
  grid_flags.declare(line, "that of the job's ranks");
  fsdp_flags.declare(line);
  spelling_flags.declare(line);
  line.heading("Values");
  values.declare_vocab(line);
  values.declare_params(line);
  line.description(
      "Loads the model into a live sharded model, as Megatron-FSDP holds it on this grid; compares every rank's weights with the files; unshards every module once and compares its values; exports the main weights and compares every bit with the source.");
  line.description(
      "The ranks of the job are those of the training run: without --dp, their number divided by tp*cp*pp is the data-parallel size.");
  line.description("Exit status 1: something differs.");
  line.example("mckpt roundtrip Qwen3-0.6B");
  line.example("mpirun -n 8 mckpt roundtrip Qwen3-30B-A3B --tp 2 --ep 4");
  line.example("mckpt roundtrip Qwen3-0.6B --logits --python ~/venv/bin/python");
  line.example("mpirun -n 4 mckpt roundtrip Qwen3-30B-A3B --dp 4 --hsdp 2 --checkpoint ckpt --json");
  line.parse();
  ranks.check();
  if (!logits && (python || trust_remote_code))
    throw Error(Code::kUsage, cat(python ? "--python" : "--trust-remote-code", " is for --logits"))
        .help("give --logits too");
  if (logits && until)
    throw Error(Code::kUsage, "the round trip stops before there is a model to compare the logits of")
        .found(cat("--until ", *until))
        .help("leave out --logits or --until");
  if (repeat < 1) throw Error(Code::kUsage, "--repeat must be at least 1").found(repeat);
  pattern = pattern_flag.pattern(grid_flags.sizes().pp);
}

void RoundtripFlags::refuse_early() const {
  for (const auto& folder : {output, checkpoint})
    if (folder && until)
      throw Error(Code::kUsage, "the round trip stops before it writes anything")
          .found(cat("--until ", *until))
          .help("leave out --output and --checkpoint, or --until");
  if (this_job().rank() != 0) return;
  // The export reads the checkpoint, so the checkpoint is one of its sources.
  std::vector<std::string> read = {source};
  for (const auto& [named, result] : {std::pair(checkpoint, cat(checkpoint.value_or(""), "/release")),
                                      std::pair(output, output.value_or(""))}) {
    if (!named) continue;
    OutputRules(read).check_folder(result);
    StagedFolder::check(*named, live_staging(!no_sync), kNotResumed, 0, 1);
    read.push_back(result);
  }
}

// Several hosts without a common folder are refused, because rank 0's temporary folder is on one of them.
void RoundtripFlags::settle(Comm& world) {
  int here = ranks_of_host(world)->size();
  if (here < world.size() && !output && !until)
    throw Error(Code::kUsage, "the ranks of several hosts need one folder for the export, and none is named")
        .note("without --output, the folder is a temporary one, which only the host of rank 0 has")
        .help("--output DIR on a file system that all hosts share, or --until check to export nothing");
  if (threads > 0) return;
  if (device != "cuda") {
    threads = std::max(1, default_threads() / here);
    return;
  }
  BlockLoadOptions feeding = threads_for_gpu(here);
  threads = feeding.threads, most_threads = feeding.most_threads;
}

// The sizes, types and packing of the live model. It points to `pattern`.
LiveSetup RoundtripFlags::setup(const ModelMap& map, i64 world) const {
  LiveSetup s;
  const ValueOptions how = values.options();
  s.grid = grid_flags.grid_of(world);
  s.fsdp = fsdp_flags.setup(s.grid);
  s.fsdp.saved = checkpoint.has_value();
  refuse_unlike_v2(s.grid, s.fsdp);
  s.run = {vocab_rows(map.model(), map.family(), s.grid.tp, how.vocab), how.params_dtype.of(map.model()),
           pattern ? &*pattern : nullptr, spelling_flags.spelling().value_or(Spelling{})};
  refuse_without_effect(s.run.spelling, map, s.run);
  StoredTypes types{main_dtype == "none" ? std::nullopt : s.main_dtype, nullptr};
  follow_engine(s.fsdp, s.run, types);
  s.main_dtype = types.main_dtype;
  s.adjust = [frozen = fsdp_flags.frozen()](std::vector<ModelParameter>& p) { frozen.apply(p); };
  return s;
}

std::string RoundtripFlags::vocab_note(const ModelMap& map, i64 world) const {
  const LiveSetup s = setup(map, world);
  return padding_note(map.model(), s.run, s.grid.tp);
}

RoundTripOptions RoundtripFlags::round_trip() const {
  using Until = RoundTripOptions::Until;
  RoundTripOptions how;
  how.threads = threads, how.most_threads = most_threads, how.repeat = repeat;
  how.until = !until                ? Until::kCompare
              : *until == "load"    ? Until::kLoad
              : *until == "unshard" ? Until::kUnshard
                                    : Until::kCheck;
  how.output = output, how.checkpoint = checkpoint, how.durable = !no_sync;
  how.model = model_flags.options();
  return how;
}

}  // namespace mckpt::impl
