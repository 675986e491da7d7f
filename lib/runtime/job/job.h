// The job of ranks that this process is part of. The program makes one and owns it; work that is shared among ranks
// takes its Comm.
//
//   Job job(launch, ends);    nothing is loaded and nobody is waited for
//   job.comm()                joins the job: through MPI, or as a rank alone
//   job.watch(limits)         from here on, a rank that is lost ends the job (runtime/watch/rank_watch.h)
//   job.leave()               the way out after success: all ranks leave together
//   job.end(status, ...)      the way out after an error, while others may be waiting for this rank
#pragma once

#include <functional>
#include <memory>

#include "runtime/job/launch.h"
#include "runtime/watch/limits.h"

namespace mckpt::impl {

class Comm;
class Error;
class RankWatch;

class Job {
 public:
  Job(Launch launch, Ends ends);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // As the launcher says.
  int rank() const { return launch_.rank; }
  int size() const { return launch_.size; }  // 0: it does not say
  bool alone() const { return launch_.size == 1; }

  // All ranks of the job. A process that was started alone gets the local Comm and loads nothing. Throws
  // Error(kModuleMissing), or Error(kRanksFailed) when MPI sees another job than the launcher started.
  Comm& comm();

  // Every rank calls it together. Does nothing for a rank alone, and for a silence of 0. `met` is called when all
  // ranks have introduced themselves; a rank that waits for others longer than the limit reports that they do not
  // come.
  void watch(
      const WatchLimits& limits, const std::function<void()>& met = [] {});
  // Of all ranks that end with an error, one reports its own: they are watched, and share a host.
  bool one_reports() const;
  // How a lost rank is reported from now on.
  void report_by(std::function<void(const Error&)> report) { ends_.report = std::move(report); }

  // The two ways out, called last.
  void leave();
  // Ends all ranks with this status, and returns only when this one is alone. `tell` is called first, unless
  // another rank's error came before and is reported there; an error that `may_follow` from another's waits
  // for that a moment.
  void end(int status, const std::function<void()>& tell, bool may_follow);

 private:
  const Launch launch_;
  Ends ends_;
  std::unique_ptr<Comm> comm_;
  std::unique_ptr<RankWatch> watch_;
  bool through_mpi_ = false;
};

}  // namespace mckpt::impl
