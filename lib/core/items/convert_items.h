// What happens to values on their way: nothing, a cast, a cast through a third type (as a real run does that
// keeps parameters in bf16 before it saves them as fp32), a constant added. Casts round to nearest, ties to
// even, as torch does; a NaN stays a NaN.
#pragma once

#include "core/items/dtype.h"

namespace mckpt {

// from -> add_before -> via -> add_after -> to. A sum is taken in the wider of the types on its two sides,
// and rounded once, to the second: -1 on the way from bf16 to fp32 loses nothing.
struct Conversion {
  DType from = DType::kU8, via = DType::kU8, to = DType::kU8;
  float add_before = 0, add_after = 0;

  // Bytes may be copied as they are.
  bool identity() const { return from == via && via == to && add_before == 0 && add_after == 0; }
  friend bool operator==(const Conversion&, const Conversion&) = default;
};

Conversion no_conversion(DType dtype);

// Whether values of the type can be cast and added to: the 16-, 32- and 64-bit floats.
bool is_castable(DType dtype);

// Throws kBadCast unless the conversion is the identity or between castable types.
void check_conversion(const Conversion& conversion);

// pre: checked; `from` and `to` hold `items` values and do not overlap, unless the conversion keeps the size
// of an item and they are the same. They need not be aligned.
void convert_items(const Conversion& conversion, const u8* from, u8* to, i64 items);

// Items that the constants of the conversion round: taking them off again does not give the bits that the
// casts alone leave. pre: as for convert_items
i64 rounded_items(const Conversion& conversion, const u8* from, i64 items);

// One value, as a test reads it and a message prints it.
float value_of(DType dtype, const u8* item);

}  // namespace mckpt
