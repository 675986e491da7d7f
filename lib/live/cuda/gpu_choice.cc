// Ranks choose in their order, each the first GPU that no rank before it has.
#include "live/cuda/gpu_choice.h"
#include "core/base/error.h"

#include <algorithm>
#include <set>

namespace mckpt::impl {

std::vector<i32> choose_gpus(std::span<const std::vector<GpuId>> usable) {
  std::vector<i32> choice;
  std::set<GpuId> taken;
  for (const std::vector<GpuId>& mine : usable) {
    auto free = std::ranges::find_if(mine, [&](const GpuId& id) { return taken.insert(id).second; });
    if (free == mine.end())
      throw Error(Code::kBadGrid, cat("rank ", std::ssize(choice), " has no GPU of its own"))
          .expected(cat("at most as many ranks as there are GPUs: ", mine.size()))
          .found(cat(std::ranges::count(usable, mine), " ranks that see the same GPUs"))
          .help("start fewer ranks on each host, or use `device` cpu");
    choice.push_back(static_cast<i32>(free - mine.begin()));
  }
  return choice;
}

}  // namespace mckpt::impl
