// Each place where the values may be is asked for by its digest; the cheapest one first.
#include "convert/compare/diff/rank_hints.h"

#include <algorithm>

#include "convert/rank/rank_share.h"
#include "core/base/text.h"

namespace mckpt::impl {
namespace {

constexpr i64 kMostParts = 64;

// An empty tensor has the digest of no bytes, as all empty ones have.
bool has_items(const RankPair& pair) {
  return std::ranges::any_of(pair.items->ranges, [](ItemRange r) { return !r.empty(); });
}

}  // namespace

RankHints::RankHints(const RankShare& share, const std::vector<RankPair>& pairs,
                     const std::vector<std::string>& digests, int threads)
    : share_(share), threads_(threads) {
  std::size_t n = 0;
  for (const RankPair& p : pairs)
    if (p.items) by_digest_.emplace(digests[n++], p.model->name);
}

std::string RankHints::of(const RankPair& pair) const {
  if (!has_items(pair)) return "";
  if (auto [first, last] = by_digest_.equal_range(pair.dump->sha256); first != last)
    return cat("the values that the model has in ", escaped(first->second),
               std::next(first) == last ? "" : " and others");
  if (std::string found = on_other_part(pair); !found.empty()) return found;
  return in_other_order(pair);
}

std::string RankHints::digest(const ModelParameter& parameter, std::vector<ItemRange> ranges,
                              DType type) const {
  const HeldItems items[] = {{&parameter, std::move(ranges), type}};
  return item_digests(*share_.model().store, items, threads_).front();
}

std::string RankHints::on_other_part(const RankPair& pair) const {
  const ModelParameter& p = *pair.items->parameter;
  if (p.part.count > kMostParts) return "";
  for (i64 part = 0; part < p.part.count; part++) {
    if (part == p.part.index) continue;
    const ModelParameter other = share_.on_part(p, part);
    if (other.shape() == p.shape() &&
        digest(other, pair.items->ranges, pair.items->dtype) == pair.dump->sha256)
      return cat("the values of ", p.expert() ? "expert-tensor-parallel" : "tensor-parallel", " rank ", part);
  }
  return "";
}

// Gate and up in the other order.
std::string RankHints::in_other_order(const RankPair& pair) const {
  const ModelParameter& p = *pair.items->parameter;
  const i64 items = p.shape().items();
  const std::vector<ItemRange>& ranges = pair.items->ranges;
  if (p.split != KeySplit::kSwiglu || ranges.size() != 1 || ranges[0].items() != items || items % 2 != 0)
    return "";
  return digest(p, {{items / 2, items}, {0, items / 2}}, pair.items->dtype) == pair.dump->sha256
             ? "its two halves are in the other order"
             : "";
}

}  // namespace mckpt::impl
