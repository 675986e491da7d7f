#include "runtime/comm/world.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "core/base/error.h"
#include "runtime/watch/activity.h"
#include "runtime/watch/rank_watch.h"
#include "runtime/watch/start_limit.h"
#include "runtime/watch/watched_comm.h"

namespace mckpt {
namespace {

std::unique_ptr<Comm> joined;  // what world() gives
bool through_mpi = false;
std::unique_ptr<RankWatch> watch;
std::function<void(const Error&)> tell_lost_rank = [](const Error&) {};

std::optional<int> number(const char* text) {
  int v = 0;
  if (!text) return {};
  auto [end, ec] = std::from_chars(text, text + std::strlen(text), v);
  if (ec != std::errc{} || *end != 0 || v < 0) return {};
  return v;
}

}  // namespace

Launch read_launch(const std::function<const char*(const char*)>& variable) {
  struct Names {
    const char *rank, *size;
  };
  // Open MPI; MPICH and Intel MPI, and srun --mpi=pmi2; srun --mpi=pmix, where only Slurm knows the size.
  static constexpr Names kNames[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                     {"PMI_RANK", "PMI_SIZE"},
                                     {"PMIX_RANK", "SLURM_NTASKS"}};
  for (const Names& names : kNames)
    if (auto rank = number(variable(names.rank))) return {*rank, number(variable(names.size)).value_or(0)};
  return {};
}

Launch launch() {
  return read_launch([](const char* name) -> const char* { return std::getenv(name); });
}

Comm& world() {
  if (joined) return *joined;
  Launch started = launch();
  if (started.size == 1) {
    joined = local_comm();
    return *joined;
  }
  joined = mpi_comm();
  through_mpi = true;
  if (started.size > 0 && joined->size() != started.size)
    throw Error(Code::kRanksFailed, "the launcher and the MPI library do not know each other")
        .expected(cat(started.size, " ranks, as the launcher says"))
        .found(cat(joined->size(), " as MPI says"))
        .help("start it with the mpirun of the MPI that mckpt was built with: scripts/mpirun; see mckpt env");
  return *joined;
}

void watch_world(const WatchLimits& limits, const std::function<void()>& met) {
  Launch started = launch();
  if (watch || limits.silence_s <= 0 || started.size == 1) return;
  // From before MPI_Init on, which waits for every rank.
  std::optional<StartLimit> start(std::in_place, limits, started.rank, started.size, tell_lost_rank);
  if (world().size() == 1) return;
  auto have_met = [&] {
    met();
    start.reset();
  };
  watch = std::make_unique<RankWatch>(world(), limits, have_met, tell_lost_rank);
  joined = watched_comm(std::move(joined));
}

bool world_is_watched() { return watch != nullptr; }

void tell_lost_ranks_by(std::function<void(const Error&)> tell) { tell_lost_rank = std::move(tell); }

void when_job_is_lost(std::function<void()> last) {
  if (watch) watch->set_last(std::move(last));
}

void leave_world() {
  if (watch) {
    Waiting waiting("leaving");
    watch->leave();
    watch.reset();
  }
  joined.reset();
  if (through_mpi) finalize_mpi();
}

void claim_world(int status, bool may_follow) {
  if (watch) watch->claim(status, may_follow);
}

void abort_world(int status, const std::function<void()>& tell, bool may_follow) {
  auto tell_if_any = [&] {
    if (tell) tell();
  };
  if (watch) watch->end(status, may_follow, tell_if_any);
  tell_if_any();
  if (joined && joined->size() > 1) joined->abort(status);
}

}  // namespace mckpt
