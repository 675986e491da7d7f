// Values beyond the range of a cast's target type: finite values that become infinite, and values that become
// zero. Rounding within the range is the purpose of a cast and not counted.
#pragma once

#include "core/base/int.h"

namespace mckpt::impl {

struct ItemCast;

// The number of items that a cast moved out of range.
struct CastLosses {
  i64 infinite = 0, zero = 0;  // items
};

// True if one of the casts is to a type of smaller range; otherwise nothing can be lost.
bool may_lose(const ItemCast& cast);

// pre: checked; `to` holds the result of cast_items() for `from`. A constant may rightly make values zero,
// so zeros are not counted if the cast adds one.
CastLosses cast_losses(const ItemCast& cast, const u8* from, const u8* to, i64 items);

}  // namespace mckpt::impl
