// Under a launcher the other ranks wait in the first barrier until rank 0 has planned, proved and checked, and
// plan for themselves then. A dry run is rank 0's alone.
#include "tools/run_conversion.h"

#include <chrono>

#include "runtime/comm/world.h"
#include "tools/render/convert_report.h"
#include "tools/render/notes.h"
#include "tools/run_observer.h"

namespace mckpt {
namespace {

using Clock = std::chrono::steady_clock;

void show_and_check(ConversionPlan& conversion, const ConvertOptions& options, const GlobalFlags& flags) {
  print_notes(flags, conversion.notes);
  prove(conversion, options.threads);
  note_plan(flags, conversion);
  print_notes(flags, conversion.details);
  options.check_report(output_rules(conversion), results_of(conversion));
  check_result(conversion, run_options(options));
}

RunResult carry_out(ConversionPlan& conversion, const ConvertOptions& options, Comm& ranks,
                    const GlobalFlags& flags) {
  RunObserver observer(flags, options.overwrite);
  try {
    return run(conversion, run_options(options), ranks, observer);
  } catch (Error& e) {
    if (e.code() == Code::kCastOverflow)
      e.help("--dtype bf16 and fp32 hold what fp16 does not; --allow-overflow publishes it all the same");
    throw;
  }
}

}  // namespace

RunOptions run_options(const ConvertOptions& options) {
  return {.threads = options.threads,
          .memory_bytes = options.memory_bytes,
          .durable = !options.no_sync,
          .overwrite = options.overwrite,
          .resume = options.resume,
          .allow_overflow = options.allow_overflow};
}

Exit run_conversion(const std::function<ConversionPlan()>& plan, std::string_view command,
                    const ConvertOptions& options, const GlobalFlags& flags, bool shares_work) {
  Clock::time_point begin = Clock::now();
  bool leader = launch().rank == 0, alone = launch().size == 1 || options.dry_run || !shares_work;
  if (alone && !leader) return Exit::kOk;
  if (!alone) options.ranks.join();
  std::unique_ptr<Comm> own = alone ? local_comm() : nullptr;
  Comm& ranks = own ? *own : world();
  if (leader) options.check_report();
  if (!leader) ranks.barrier();
  ConversionPlan conversion = plan();
  if (leader) {
    show_and_check(conversion, options, flags);
    ranks.barrier();
  }
  std::optional<RunResult> result;
  if (!options.dry_run) result = carry_out(conversion, options, ranks, flags);
  if (!leader) return Exit::kOk;
  if (result) print_notes(flags, result->notes);
  double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  write_report(flags, command, conversion, result ? &*result : nullptr, seconds, options.report);
  return Exit::kOk;
}

}  // namespace mckpt
