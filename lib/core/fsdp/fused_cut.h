// FusedCut: the parts of a fused parameter beside the items that ranks have of it, both in the local order of
// the parameter on one tensor-parallel rank:
//
//   parts    |WWWWWWWWWWWWWWWWWWWW|VVVVVVVVVVVVVVVVVVVV|      fc1 [10, 4]: W is [0, 20), V is [20, 40)
//   ranks    |0000000000000000|1111111111111111|22222222|    rank 1 has [16, 32): W [16, 20) and V [20, 32)
//
// An optimizer whose states are plain tensors knows the rank's own number of items alone. Cut by that number,
// as Megatron did before PR 4423, the parts of rank 1 are [0, 8) and [8, 16): it has items of neither, and
// nothing of its states is saved; rank 0 saves its own W [8, 16) as V.
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"
#include "core/items/item_run.h"

namespace mckpt::impl {

struct FusedPart {
  std::string name;
  ItemRange items;
};
struct FusedShare {
  i64 rank = 0;
  ItemRange items;
};

struct FusedCut {
  std::vector<FusedPart> parts{};    // tile the parameter, ascending
  std::vector<FusedShare> shares{};  // tile it too, ascending; empty ones anywhere

  i64 items() const { return parts.empty() ? 0 : parts.back().items.end; }
};

// The items of the share that belong to the part.
ItemRange part_of_share(const FusedPart& part, const FusedShare& share);
// The items that the share gives to the part if parts are cut by the share's own number of items.
ItemRange part_by_local_count(const FusedCut& cut, const FusedPart& part, const FusedShare& share);

// How the items of a share come out of that rule.
struct LocalCountLoss {
  i64 right = 0;  // in their part
  i64 wrong = 0;  // in another part
  i64 lost = 0;   // in none
};
LocalCountLoss loss_by_local_count(const FusedCut& cut, const FusedShare& share);

}  // namespace mckpt::impl
