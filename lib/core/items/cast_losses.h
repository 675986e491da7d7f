// What a cast does to values that lie beyond the range of its target: finite ones that become infinite, and
// ones that become zero. Rounding within the range is what a cast is asked for and no loss.
#pragma once

#include "core/items/convert_items.h"

namespace mckpt {

struct CastLosses {
  i64 infinite = 0, zero = 0;  // items
};

// Whether one of its casts goes into a type of a smaller range, so that looking is worth the time.
bool may_lose(const Conversion& conversion);

// pre: checked; `to` holds what convert_items() made of `from`. Constants move values onto zero rightly, so
// that beside one nothing is told of zeros.
CastLosses cast_losses(const Conversion& conversion, const u8* from, const u8* to, i64 items);

}  // namespace mckpt
