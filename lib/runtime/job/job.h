// Job: the job of ranks that this process is part of. The program makes one and owns it; work that is shared
// among ranks takes its Comm.
//
//   Job job(launch, ends);    nothing is loaded and no rank is waited for
//   job.comm()                joins the job: through MPI, or as a rank alone
//   job.watch(limits)         from here on, a rank that is lost ends the job (runtime/watch/rank_watch.h)
//   job.leave()               the way out after success: all ranks leave together
//   job.end(status, ...)      the way out after an error, while others may be waiting for this rank
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/job/launch.h"
#include "runtime/watch/limits.h"

namespace mckpt::impl {

class Comm;
class Error;
class RankWatch;

// One for each process, used by the thread of the command. Exactly one of leave() and end() is called, last.
class Job {
 public:
  // `module_folders`: where the MPI module is looked for first (runtime/system/module_folders.h).
  Job(Launch launch, Ends ends, std::vector<std::string> module_folders = {});
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // The numbers that the launcher put into the environment.
  int rank() const { return launch_.rank; }
  int size() const { return launch_.size; }  // 0: not known
  bool alone() const { return launch_.size == 1; }

  // All ranks of the job. A process that was started alone gets the local Comm and loads nothing. Throws
  // Error(kModuleMissing), or Error(kRanksFailed) when MPI sees another job than the launcher started.
  Comm& comm();

  // Collective. Does nothing for a rank alone, and for a silence of 0. `met` is called when all ranks have
  // introduced themselves; a rank that waits for the others longer than the limit reports that they are
  // missing.
  void watch(
      const WatchLimits& limits, const std::function<void()>& met = [] {});
  // True if exactly one of all ranks that end with an error reports its own: the ranks are watched and share
  // a host.
  bool one_reports() const;
  // Sets how a lost rank is reported. Called before watch(), which copies the function.
  void report_by(std::function<void(const Error&)> report) { ends_.report = std::move(report); }

  // The two ways out, called last.
  void leave();
  // Ends all ranks with this status; returns only if this process is the only rank. `tell` reports the error
  // and is called first, unless the error of another rank came before and is reported there. An error that
  // `may_follow` from another rank's waits a moment for that one.
  void end(int status, const std::function<void()>& tell, bool may_follow);

 private:
  const Launch launch_;
  Ends ends_;
  const std::vector<std::string> module_folders_;
  std::unique_ptr<Comm> comm_;
  std::unique_ptr<RankWatch> watch_;
  WatchLimits limits_;  // of the watch
  bool through_mpi_ = false;
};

}  // namespace mckpt::impl
