// TensorAccount: the account of a conversion tensor by tensor, as the proof saw it in the moves of all tasks:
//
//   target   made    uses                                    unread, by source
//   0 qkv    fused   2 q: 512 items   3 k: 256   4 v: 256    0 of q, k, v; all of a copy that is left out
//   1 embed  copied  0 embed: 500     zeros: 12
//
// It is made only if it is asked for: its memory grows with the pairs of tensors, and with the chunks while
// it is made.
#pragma once

#include <vector>

#include "core/base/int.h"
#include "core/items/item_cast.h"

namespace mckpt::impl {

// Items of a tensor of the result, and where they come from.
struct TensorUse {
  i32 target = -1, source = -1;  // source -1: they are zeros, which no tensor of the source has
  i64 items = 0;
  ItemCast cast{};
  i32 file = 0;  // of the result: where the first of them is
  i64 byte = 0;
};

// The kind of a tensor of the result, as Account counts it. Tied: it has the items of another tensor of the
// result.
enum class Made : u8 { kAbsent, kCopied, kFused, kSplit, kDequantized, kQuantized, kTied, kInvented };

// A source that is used twice for one tensor with different casts is listed twice.
struct TensorAccount {
  std::vector<TensorUse> uses;  // by target; the uses of one target as they follow one another in its files
  std::vector<Made> made;       // by target
  std::vector<i64> unread;      // by source: items that the result does not have
};

// Adds up the uses of one source in one target from position `begin` on, and sorts them by target and source.
void merge_uses(std::vector<TensorUse>& uses, std::size_t begin = 0);
// Puts merged uses in the order of TensorAccount.
void order_uses(std::vector<TensorUse>& uses);

}  // namespace mckpt::impl
