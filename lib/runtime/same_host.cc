#include "runtime/same_host.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace mckpt {
namespace {

// Tells hosts apart that have one name (as machines out of one image do), and containers of one host, which
// see different files.
std::string name_of_host() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return std::string(name) + " " + boot;
}

}  // namespace

std::unique_ptr<Comm> ranks_of_host(Comm& comm) {
  std::string mine = name_of_host();
  Gathered all = comm.all_gather_v(std::as_bytes(std::span(mine)));
  int first = 0;
  while (!std::ranges::equal(all.of(first), std::as_bytes(std::span(mine)))) first++;
  return comm.split(first, comm.rank());
}

}  // namespace mckpt
