// Under a launcher the other ranks wait in the first barrier until rank 0 has planned, proved and checked,
// and plan for themselves then. A dry run is rank 0's alone.
#include "tools/run/conversion.h"

#include <chrono>

#include "convert/asked/plan.h"
#include "convert/jobs/proof.h"
#include "convert/plan/conversion.h"
#include "convert/run/result_card.h"
#include "convert/run/run.h"
#include "core/base/error_code.h"
#include "core/base/text.h"
#include "io/output/output_rules.h"
#include "runtime/comm/comm.h"
#include "runtime/job/job.h"
#include "tools/answers/conversion/account_rows.h"
#include "tools/answers/conversion/report.h"
#include "tools/options/of_commands/convert_options.h"
#include "tools/process/job.h"
#include "tools/render/findings.h"
#include "tools/render/notes.h"
#include "tools/render/output.h"
#include "tools/run/observer.h"

namespace mckpt::impl {
namespace {

using Clock = std::chrono::steady_clock;

void show_and_check(Conversion& conversion, const ConvertOptions& options, const GlobalFlags& flags) {
  for (const Oddities& odd : conversion.oddities) tell_findings(flags, odd.findings, odd.root);
  print_notes(flags, conversion.notes);
  prove(conversion, options.run.threads, options.report || flags.verbose > 0);
  auto check = [&] {
    options.check_report(output_rules(conversion), results_of(conversion));
    check_result(conversion, run_options(options.run));
  };
  if (!options.dry_run) check();  // a dry run shows its plan in any case
  note_plan(flags, conversion);
  if (flags.verbose > 0 && conversion.tensors) note_tensors(flags, conversion);
  print_notes(flags, conversion.details);
  if (options.dry_run) check();
}

}  // namespace

Exit run_conversion(const std::function<Conversion()>& plan, std::string_view command,
                    const ConvertOptions& options, const GlobalFlags& flags, bool shares_work) {
  Clock::time_point begin = Clock::now();
  bool leader = this_job().rank() == 0, alone = this_job().alone() || options.dry_run || !shares_work;
  if (alone && !leader) return Exit::kOk;
  if (!alone) options.ranks.join();
  std::unique_ptr<Comm> own = alone ? local_comm() : nullptr;
  Comm& ranks = own ? *own : this_job().comm();
  if (leader) options.check_report();
  if (!leader) ranks.barrier();
  Conversion conversion = tell_damage(flags, plan);
  if (leader) {
    show_and_check(conversion, options, flags);
    ranks.barrier();
  }
  std::optional<RunResult> result;
  if (!options.dry_run) {
    RunObserver observer(flags, ranks.activity());
    result = run(conversion, run_options(options.run), ranks, observer);
    if (leader)
      write_result_cards(conversion,
                         {.files = options.run.card,
                          .command = options.run.command,
                          .threads = options.run.threads,
                          .durable = options.run.sync},
                         observer);
  }
  if (!leader) return Exit::kOk;
  if (result) print_notes(flags, result->notes);
  print_notes(flags, conversion.outcome);
  if (!result && conversion.single_file)
    note(flags, cat("would write ", human_bytes(conversion.bytes), " to ", escaped(conversion.path, 4096)));
  double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  write_report(flags, command, conversion, result ? &*result : nullptr, seconds, options.report);
  return Exit::kOk;
}

}  // namespace mckpt::impl
