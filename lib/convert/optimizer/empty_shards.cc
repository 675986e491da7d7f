// Counts, for each group and rank, the parameters with a piece of at least one item.
#include "convert/optimizer/empty_shards.h"

#include <algorithm>
#include <set>

#include "convert/optimizer/content.h"
#include "core/base/text.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

// The ranks that wrote items of the tensor. Nothing where a piece has no rank.
std::optional<std::set<i64>> ranks_of(const Store& store, i64 tensor) {
  std::set<i64> out;
  for (i64 c = 0; c < store.chunk_count(tensor); c++) {
    const Chunk chunk = store.chunk(tensor, c);
    if (chunk.rank < 0) return std::nullopt;
    if (std::ranges::find(chunk.sizes, 0) == chunk.sizes.end()) out.insert(chunk.rank);
  }
  return out;
}

}  // namespace

std::vector<EmptyShards> empty_shards(const Store& store, const OptimizerContent& content) {
  std::vector<std::set<i64>> holders(content.groups.size());
  std::vector<i64> members(content.groups.size());
  std::set<i64> all;
  bool sharded = false;
  for (const OptimizerContent::Parameter& p : content.parameters) {
    if (p.group < 0 || p.tensors.empty()) continue;
    members[p.group]++;
    for (i64 tensor : p.tensors) {
      const std::optional<std::set<i64>> ranks = ranks_of(store, tensor);
      if (!ranks) return {};
      sharded |= ranks->size() > 1;
      holders[p.group].insert(ranks->begin(), ranks->end());
      all.insert(ranks->begin(), ranks->end());
    }
  }
  std::vector<EmptyShards> out;
  for (std::size_t g = 0; sharded && g < holders.size(); g++)
    for (i64 rank : all)
      if (members[g] > 0 && !holders[g].contains(rank))
        out.push_back({rank, content.groups[g].name, members[g]});
  return out;
}

std::string empty_shards_text(const std::vector<EmptyShards>& all) {
  constexpr std::size_t kMost = 4;
  std::string out;
  for (std::size_t i = 0; i < std::min(kMost, all.size()); i++)
    out += cat(i == 0 ? "" : ", ", "rank ", all[i].rank, " holds no item of ", all[i].group, " (",
               counted(all[i].parameters, "parameter"), ")");
  if (all.size() > kMost) out += cat(" and ", all.size() - kMost, " more of this kind");
  return out;
}

}  // namespace mckpt::impl
