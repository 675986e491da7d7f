// The change of values while they are copied: none, a cast, a cast through a third type (as in a training run
// that has parameters in bf16 and saves them as fp32), or an added constant. Casts round to
// nearest, ties to even, as torch does; a NaN stays a NaN.
#pragma once

#include "core/items/dtype.h"

namespace mckpt::impl {

// from -> add_before -> via -> add_after -> to. A sum is computed in the wider of the types before and after
// it and rounded once, to the type after it: adding -1 between bf16 and fp32 loses nothing. The default is a
// copy of bytes.
struct ItemCast {
  DType from = DType::kU8, via = DType::kU8, to = DType::kU8;
  float add_before = 0, add_after = 0;

  // Bytes may be copied as they are.
  bool identity() const { return from == via && via == to && add_before == 0 && add_after == 0; }
  friend bool operator==(const ItemCast&, const ItemCast&) = default;
};

ItemCast no_cast(DType dtype);

// True for types that can be cast and added to: the 16-, 32- and 64-bit floats.
bool is_castable(DType dtype);

// Throws kBadCast unless the cast is the identity or between castable types.
void check_cast(const ItemCast& cast);

// pre: checked; `from` and `to` hold `items` values and do not overlap, unless the cast keeps the size
// of an item and they are the same. They need not be aligned.
void cast_items(const ItemCast& cast, const u8* from, u8* to, i64 items);

// The number of items that the constants round: subtracting the constants again does not give the bits that
// the casts alone give. pre: as for cast_items
i64 rounded_items(const ItemCast& cast, const u8* from, i64 items);

// One value, as a test reads it and a message prints it.
float value_of(DType dtype, const u8* item);

}  // namespace mckpt::impl
