// mckpt roundtrip: a Hugging Face model into a live sharded model over ranks and back, every bit compared.
//
//   parse -> refuse what can be refused alone -> the ranks meet -> open, make the model -> round_trip() -> report
#include "convert/keys/key_table.h"
#include "convert/keys/name_rules.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/model.h"
#include "io/verify/manifest_check.h"
#include "live/cuda/device.h"
#include "live/device/device.h"
#include "live/device/kept_memory.h"
#include "live/device/tensor.h"
#include "live/load/load.h"
#include "live/model/model.h"
#include "live/round_trip/round_trip.h"
#include "runtime/comm/claim.h"
#include "runtime/job/job.h"
#include "runtime/modules/module.h"
#include "tools/answers/roundtrip_report.h"
#include "tools/commands/commands.h"
#include "tools/options/command_line.h"
#include "tools/options/of_commands/roundtrip_flags.h"
#include "tools/process/interrupt.h"
#include "tools/process/job.h"
#include "tools/process/module_path.h"
#include "tools/process/python.h"
#include "tools/render/findings.h"
#include "tools/render/notes.h"
#include "tools/render/output.h"
#include "tools/run/logits.h"
#include "tools/run/observer.h"

namespace mckpt::impl {
namespace {

// How many bytes a phase of a round trip moves is not known beforehand: each has a line of progress all the
// same.
class RoundTripObserver final : public RunObserver {
 public:
  using RunObserver::RunObserver;
  void begin(const std::string& phase, i64 bytes) override { show(phase, bytes); }
};

std::unique_ptr<Device> make_device(const std::string& name) {
  if (name != "cuda") return std::make_unique<HostDevice>();
  try {
    return cuda_device(this_job().comm(), module_path());
  } catch (Error& e) {
    constexpr const char* kInstead = "--device cpu keeps the model in the host's memory";
    if (e.code() == Code::kModuleMissing) e.help().empty() ? e.help(kInstead) : e.note(kInstead);
    throw;
  }
}

LogitsOptions logits_options(const RoundtripFlags& options) {
  return {find_python(options.python), options.trust_remote_code};
}

// While Python works, this rank does.
bool going_on() {
  this_job().comm().activity().made_progress();
  return !*stop_flag();
}

HfModel open_source(const RoundtripFlags& options, const GlobalFlags& flags) {
  HfModelOptions reading = options.model_flags.options();
  reading.leave_unlike_copies = this_job().comm().rank() != 0;
  reading.threads = options.threads;
  HfModel source = open_hf_model(options.source, reading);
  if (!source.has_data())
    throw Error(Code::kNotFound, "the folder has no weights to load").file(options.source);
  i64 ranks = this_job().comm().size();
  if (std::string text = options.grid_flags.note_of(ranks); !text.empty()) note(flags, text);
  print_notes(flags, notes_of(source));
  if (std::string text = options.vocab_note(*source.map, ranks); !text.empty()) note(flags, text);
  if (this_job().comm().rank() == 0) require_listed_files(options.source, source.opening);
  return source;
}

RoundTripResult go_through(const RoundtripFlags& options, const HfModel& source, LiveModel& model,
                           const KeptMemory& gathered, const GlobalFlags& flags,
                           std::optional<LogitsAnswer>& logits) {
  model.wrap();
  options.fsdp_flags.frozen().refuse_unmatched(live_keys(model).parameters());
  RoundTripObserver observer(flags, this_job().comm().activity());
  RoundTripOptions how = options.round_trip();
  if (options.logits)
    how.logits = [&](const std::string& exported) {
      logits = compare_logits(exported, options.source, logits_options(options), going_on);
      return logits->equal ? std::string() : cat("the logits: ", logits->line);
    };
  return round_trip(model, gathered, source, how, observer);
}

}  // namespace

Exit roundtrip_command(CommandLine& line) {
  const GlobalFlags& flags = line.flags();
  RoundtripFlags options;
  options.parse(line);
  options.refuse_early();
  options.ranks.join();
  options.settle(this_job().comm());
  if (options.logits && this_job().comm().rank() == 0)
    check_logits(options.source, logits_options(options), going_on);
  load_module("torch", module_path());
  Tensor::set_threads(options.threads);
  HfModel source = open_source(options, flags);

  std::unique_ptr<Device> device = make_device(options.device);
  KeptMemory gathered(device->weights());
  LiveModel model(*source.map, options.setup(*source.map, this_job().comm().size()), this_job().comm(),
                  *device, gathered);
  // Leaving the model ends its communicators, which ranks that use them take for an error.
  std::optional<LogitsAnswer> logits;
  RoundTripResult result = claiming_errors(
      this_job().comm(), [&] { return go_through(options, source, model, gathered, flags, logits); });
  tell_findings(flags, result.oddities, options.checkpoint.value_or(""));
  write_roundtrip(flags, {result, options, *source.map, logits}, model);
  return result.difference_count > 0 ? Exit::kNo : Exit::kOk;
}

}  // namespace mckpt::impl
