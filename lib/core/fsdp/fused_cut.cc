// Both rules intersect the share with the ranges of the parts; they differ in the ranges.
#include "core/fsdp/fused_cut.h"

namespace mckpt::impl {
namespace {

// The item at the same fraction of the share's number of items.
i64 scaled(i64 item, i64 items, i64 local) {
  return static_cast<i64>(static_cast<__int128>(item) * local / items);
}

}  // namespace

ItemRange part_of_share(const FusedPart& part, const FusedShare& share) {
  return intersection(part.items, share.items);
}

ItemRange part_by_local_count(const FusedCut& cut, const FusedPart& part, const FusedShare& share) {
  const i64 items = cut.items(), local = share.items.items();
  if (items == 0) return {};
  return intersection({scaled(part.items.begin, items, local), scaled(part.items.end, items, local)},
                      share.items);
}

LocalCountLoss loss_by_local_count(const FusedCut& cut, const FusedShare& share) {
  LocalCountLoss loss{.lost = share.items.items()};
  for (const FusedPart& part : cut.parts) {
    const ItemRange taken = part_by_local_count(cut, part, share);
    const i64 right = intersection(taken, part.items).items();
    loss.right += right, loss.wrong += taken.items() - right, loss.lost -= taken.items();
  }
  return loss;
}

}  // namespace mckpt::impl
