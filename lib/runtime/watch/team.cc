#include "runtime/watch/team.h"

#include <sched.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

namespace mckpt {
namespace {

constexpr std::size_t kMostAddresses = 16;
using Address = std::array<char, 48>;

// What a rank says of itself.
struct Introduction {
  HostId host;
  i64 pid = 0;
  cpu_set_t cores = {};
};

struct WrittenInvitation {
  i64 port = 0;
  std::array<Address, kMostAddresses> addresses = {};
  WatchToken hello = {}, welcome = {};
};

Introduction introduction() {
  Introduction me{.host = this_host(), .pid = getpid()};
  sched_getaffinity(0, sizeof me.cores, &me.cores);  // none where there are more than fit
  return me;
}

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

void draw(WatchToken& token) {
  if (getrandom(token.data(), token.size(), 0) != static_cast<ssize_t>(token.size()))
    throw Error(Code::kRanksFailed, cat("the system gives no random numbers: ", std::strerror(errno)));
}

}  // namespace

std::string Team::name(int of) const {
  const Rank& r = ranks[static_cast<std::size_t>(of)];
  return cat("rank ", of, " (host ", escaped(r.host.name.data()), ", process ", r.pid, ")");
}

int Team::deputy() const {
  for (int r = 1; r < size(); r++)
    if (ranks[static_cast<std::size_t>(r)].host != ranks[0].host) return r;
  return 1;
}

Team meet(Comm& comm) {
  Introduction me = introduction();
  std::vector<Introduction> all(static_cast<std::size_t>(comm.size()));
  comm.all_gather(std::as_bytes(std::span(&me, 1)), std::as_writable_bytes(std::span(all)));
  Team team;
  team.rank = comm.rank();
  for (const Introduction& one : all) {
    team.ranks.push_back({one.host, static_cast<i32>(one.pid)});
    team.one_host &= one.host == all[0].host;
  }
  team.ranks_per_core = fullest(all);
  return team;
}

Invitation invite(Comm& comm, const Listener* listener) {
  WrittenInvitation written;
  if (listener) {
    written.port = listener->port;
    for (std::size_t i = 0; i < std::min(kMostAddresses, listener->addresses.size()); i++)
      listener->addresses[i].copy(written.addresses[i].data(), sizeof(Address) - 1);
    draw(written.hello);
    draw(written.welcome);
  }
  comm.broadcast(std::as_writable_bytes(std::span(&written, 1)), 0);
  Invitation invitation{{}, written.hello, written.welcome};
  for (const Address& address : written.addresses)
    if (address[0]) invitation.endpoints.push_back({address.data(), static_cast<int>(written.port)});
  return invitation;
}

}  // namespace mckpt
