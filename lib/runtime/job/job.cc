// Which way a process joins its job, and which way it leaves it: a process that was started alone loads no
// MPI; with a watch, an error is reported by one rank and the watch ends the processes; without a watch,
// MPI_Abort does.
#include "runtime/job/job.h"

#include <optional>

#include "core/base/error.h"
#include "runtime/comm/comm.h"
#include "runtime/modules/module.h"
#include "runtime/watch/meeting_limit.h"
#include "runtime/watch/rank_watch.h"

namespace mckpt::impl {

Job::Job(Launch launch, Ends ends, std::vector<std::string> module_folders)
    : launch_(launch), ends_(std::move(ends)), module_folders_(std::move(module_folders)) {}
Job::~Job() = default;

// Throws kRanksFailed where launcher and library are of different MPIs: each rank would think that it is
// alone, and all would write the same files.
Comm& Job::comm() {
  if (comm_) return *comm_;
  if (alone()) {
    comm_ = local_comm();
    return *comm_;
  }
  load_module("mpi", module_folders_);
  comm_ = mpi_comm();
  through_mpi_ = true;
  if (launch_.size > 0 && comm_->size() != launch_.size)
    throw Error(Code::kRanksFailed, "the launcher and the MPI library do not belong together")
        .expected(cat(counted(launch_.size, "rank"), ", as the launcher says"))
        .found(cat(comm_->size(), " as MPI says"))
        .help(
            "start mckpt with the mpirun of the MPI that it was built with: scripts/mpirun; `mckpt env` shows the MPI");
  return *comm_;
}

void Job::watch(const WatchLimits& limits, const std::function<void()>& met) {
  if (watch_ || limits.silence_s <= 0 || alone()) return;
  // The clock starts before MPI_Init, which waits for every rank.
  limits_ = limits;
  std::optional<MeetingLimit> start(std::in_place, MeetingLimit::At::kStart, limits, launch_.rank,
                                    launch_.size, ends_);
  if (comm().size() == 1) return;
  watch_ = std::make_unique<RankWatch>(comm(), limits, ends_, [&] {
    met();
    start.reset();
  });
}

bool Job::one_reports() const { return watch_ && watch_->whole_job(); }

void Job::leave() {
  if (watch_) watch_->leave();
  // The ranks of other hosts may have work left, and nobody knows for how long.
  const bool all_have_left = one_reports();
  watch_.reset();
  comm_.reset();
  if (!through_mpi_) return;
  std::optional<MeetingLimit> end;
  if (all_have_left) end.emplace(MeetingLimit::At::kEnd, limits_, launch_.rank, launch_.size, ends_);
  finalize_mpi();
}

// Returns only for a job of one rank.
void Job::end(int status, const std::function<void()>& tell, bool may_follow) {
  if (watch_) watch_->end(status, may_follow, tell);
  tell();
  if (comm_ && comm_->size() > 1) {
    comm_->abort(status);
    ends_.exit(status);
  }
}

}  // namespace mckpt::impl
