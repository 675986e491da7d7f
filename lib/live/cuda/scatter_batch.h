// The argument of one launch of the scatter kernel, by value: a batch of copies, each cut into tiles of
// units. A block of threads carries out one tile.
//
//   unit      what one thread moves at a time: 1 to 16 bytes unchanged, or items to convert
//   unit n    of row r = n / row at place n % row; row r = outer * inner + i of the loops
//
//   a copy of 4 rows of 96 bytes, aligned to 32:   kCopy16, 6 units a row, 24 units, 1 tile of 1024
//
// This header is read by the host's compiler, which makes batches (live/cuda/scatter_plan.h), and by NVRTC,
// which has no other header: so it includes nothing.
#pragma once

namespace mckpt::impl {

// How a thread moves a unit.
enum ScatterKind : unsigned char {
  kCopy1,
  kCopy2,
  kCopy4,
  kCopy8,
  kCopy16,
  kConvert1,     // items of at most 4 bytes, one at a time
  kConvert8,     // eight such items, with both sides at multiples of 16 bytes
  kConvertWide,  // a 64-bit float is among the types
  kConvertBytes  // items of any type, with a side at an address that is not a multiple of the item's size
};

// The types of items that can be converted.
enum ScatterType : unsigned char { kScatterBF16, kScatterF16, kScatterF32, kScatterF64 };

// The steps of a conversion, one byte each, the first in the lowest byte; a byte 0 ends them. A step reads
// the item as one type, adds a constant, and rounds to the other type. fp32 to bf16: 0x05 = kStep |
// kScatterF32 << 1.
enum : unsigned {
  kStep = 1,
  kStepFrom = 1,  // the first bit of the type read
  kStepTo = 3,    // the first bit of the type written
  kStepAdd = 5,   // 1: add[0], 2: add[1]
};

// A tile is 256 threads with 4 units each, so that the loads of one thread overlap.
constexpr unsigned kScatterThreads = 256;
constexpr unsigned kScatterUnitsPerThread = 4;
constexpr unsigned kScatterTile = kScatterThreads * kScatterUnitsPerThread;  // units

// Division without a division: n / d for n < 2^31 is n * multiplier >> 31 + shift. 2^shift is the least power
// of two that is not below d, and multiplier the least integer that is not below 2^(31+shift) / d; the
// product is too large by less than n / 2^(31+shift) < 1 / d, which never reaches the next integer.
struct ScatterDivisor {
  unsigned value, multiplier, shift;
};

// One copy of a batch. Strides are in bytes, sizes in units.
struct ScatterCopy {
  const unsigned char* from;
  unsigned char* to;
  long long inner_from, inner_to, outer_from, outer_to;  // bytes
  ScatterDivisor row, inner;                             // units of a row; rows of an outer step
  unsigned units;                                        // of all rows, less than 2^31
  unsigned first_tile;                                   // the number of its first tile in the batch
  unsigned steps;
  float add[2];
  unsigned char kind, from_bytes, to_bytes;  // of a unit
};

constexpr int kScatterCopies = 42;

// The argument of one launch: `count` copies of `tiles` tiles in all.
struct ScatterBatch {
  int count;
  unsigned tiles;
  ScatterCopy copies[kScatterCopies];
};

// The size of arguments that a kernel may have in every version of CUDA.
static_assert(sizeof(ScatterBatch) <= 4096, "a batch is too large to be given by value");

}  // namespace mckpt::impl
