// The largest finite value of a tensor, and whether it stands far above the values around it. A bit that
// flipped in an exponent makes one value of thousands larger by powers of ten; a value that belongs there has
// others near it.
//
//   exponents of a stretch of 4,096 values     -12  -9  -8  -7 -6 -5           99
//   how many values have them                    7 300 900 ...                  1      few, and a gap below them
#pragma once

#include <span>

#include "core/base/int.h"

namespace mckpt::impl {

enum class DType : u8;

struct Loudest {
  u64 code = 0;  // its bits without the sign; 0: all values are zero
  // Facts of a value that is large as a number, and -1 or 0 for any other:
  i64 at = -1;       // the first of the stretch that has it, counted in numbers of the tensor
  int exponent = 0;  // of the value: 2^exponent <= |x|
  int around = 0;  // of half of the other values in its stretch or more, zeros left out: |x| < 2^(around + 1)
  bool apart = false;  // the other values are many, and farther below than they are from each other
  bool few = false;    // it is of one value in 256 at most
};

// Whether values of a type are numbers with exponents that say something: floats of 16 bits and more.
bool has_wide_exponents(DType dtype);

// Facts of the largest value of a stretch of numbers, the first of which has index `at` in the tensor.
// `code`: the bits of that value without the sign. Looks at the values only if it is 256 or more.
Loudest look_closer(DType dtype, std::span<const u8> bytes, i64 at, u64 code);

}  // namespace mckpt::impl
