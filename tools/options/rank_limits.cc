// Declares and checks the two timeouts, and joins the job. A timeout is 0 (never) or 1 to 1,000,000 seconds.
#include "tools/options/rank_limits.h"

#include "core/base/error.h"
#include "runtime/job/job.h"
#include "tools/options/command_line.h"
#include "tools/process/interrupt.h"
#include "tools/process/job.h"

namespace mckpt::impl {
namespace {

constexpr double kLeast = 1, kMost = 1e6;

void check_seconds(const char* option, double seconds) {
  if (seconds == 0 || (seconds >= kLeast && seconds <= kMost)) return;
  throw Error(Code::kUsage, cat(option, " must be a number of seconds"))
      .expected(cat("0, or ", kLeast, " to ", kMost))
      .found(seconds);
}

}  // namespace

void RankLimits::declare(CommandLine& line) {
  line.option("--rank-timeout SECONDS", silence_s,
              cat("abort if a rank sends no heartbeat for SECONDS (default ", silence_s, "; 0 = never)"));
  line.option("--phase-timeout SECONDS", phase_s,
              cat("abort if a rank makes no progress for SECONDS (default ", phase_s, "; 0 = never)"));
}

void RankLimits::check() const {
  check_seconds("--rank-timeout", silence_s);
  check_seconds("--phase-timeout", phase_s);
}

void RankLimits::join() const {
  // Before the ranks have met, one reports, and the signal that the launcher then sends is to end the others
  // at once.
  this_job().watch(*this, [] { stop_flag(); });
  stop_flag();
}

}  // namespace mckpt::impl
