// Ranks share a board if they run under one kernel and see the same memory of System V (one IPC namespace).
#include "runtime/watch/team.h"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "core/base/text.h"
#include "runtime/comm/comm.h"

namespace mckpt::impl {
namespace {

// The introduction that a rank sends to the others; plain bytes.
struct Introduction {
  HostId host;
  u64 memory = 0;  // the namespace of shared memory
  i64 pid = 0;
  cpu_set_t cores = {};
};

// A container's ranks may use fewer cores than the host has: the affinity says which.
Introduction introduction() {
  Introduction me{.host = this_host(), .pid = getpid()};
  struct stat st {};
  if (stat("/proc/self/ns/ipc", &st) == 0) me.memory = st.st_ino;
  sched_getaffinity(0, sizeof me.cores, &me.cores);  // none where there are more than fit
  return me;
}

// The largest number of ranks per core of any host. The cores of a host are the union of those that its ranks
// may use.
double fullest(const std::vector<Introduction>& all) {
  std::map<HostId, std::pair<cpu_set_t, int>> hosts;
  double most = 1;
  for (const Introduction& one : all) {
    auto& [cores, ranks] = hosts[one.host];
    CPU_OR(&cores, &cores, &one.cores);
    ranks++;
  }
  for (const auto& [place, host] : hosts)
    if (int cores = CPU_COUNT(&host.first)) most = std::max(most, static_cast<double>(host.second) / cores);
  return most;
}

}  // namespace

std::string Team::name(int place) const {
  const Rank& r = ranks[place];
  return cat("rank ", r.rank, " (host ", escaped(r.host.name.data()), ", process ", r.pid, ")");
}

// Places are in the order of ranks, so all ranks of a host number them alike.
Team meet(Comm& comm) {
  Introduction me = introduction();
  std::vector<Introduction> all(static_cast<std::size_t>(comm.size()));
  comm.all_gather(std::as_bytes(std::span(&me, 1)), std::as_writable_bytes(std::span(all)));
  Team team;
  for (int r = 0; r < comm.size(); r++) {
    if (all[r].host != me.host || all[r].memory != me.memory) continue;
    if (r == comm.rank()) team.own = team.size();
    team.ranks.push_back({r, all[r].host, all[r].pid});
  }
  team.first_of_host = team.ranks[0].rank;
  team.whole_job = team.size() == comm.size();
  team.ranks_per_core = fullest(all);
  return team;
}

}  // namespace mckpt::impl
