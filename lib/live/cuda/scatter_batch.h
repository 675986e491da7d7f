// What one launch of the scatter kernel is given, by value: a batch of copies, each cut into tiles of units.
// A block carries out one tile.
//
//   unit      what one thread moves at a time: 1 to 16 bytes as they are, or items to convert
//   unit n    of row r = n / row at place n % row; row r = outer * inner + i of the loops
//
// Read by the host's compiler, which makes batches (live/cuda/scatter_plan.h), and by NVRTC, which knows no other
// header: so no includes.
#pragma once

namespace mckpt::impl {

enum ScatterKind : unsigned char {
  kCopy1,
  kCopy2,
  kCopy4,
  kCopy8,
  kCopy16,
  kConvert1,     // items of at most 4 bytes, one at a time
  kConvert8,     // eight of them, of which both sides lie at multiples of 16 bytes
  kConvertWide,  // a 64-bit float is among the types
  kConvertBytes  // items of any type, of which one side lies at no multiple of their size
};

enum ScatterType : unsigned char { kScatterBF16, kScatterF16, kScatterF32, kScatterF64 };

// A step of a conversion, a byte each, the first in the lowest; none is 0: read as one type, add, round to
// the other.
enum : unsigned {
  kStep = 1,
  kStepFrom = 1,  // the first bit of the type read
  kStepTo = 3,    // the first bit of the type written
  kStepAdd = 5,   // 1: add[0], 2: add[1]
};

constexpr unsigned kScatterThreads = 256;
constexpr unsigned kScatterUnitsPerThread = 4;
constexpr unsigned kScatterTile = kScatterThreads * kScatterUnitsPerThread;  // units

// n / d for n < 2^31, as n * multiplier >> 31 + shift: with 2^shift the least power that is not below d and
// multiplier the least integer that is not below 2^(31+shift) / d, the product is too large by less than
// n / 2^(31+shift) < 1 / d, which never reaches the next integer.
struct ScatterDivisor {
  unsigned value, multiplier, shift;
};

struct ScatterCopy {
  const unsigned char* from;
  unsigned char* to;
  long long inner_from, inner_to, outer_from, outer_to;  // bytes
  ScatterDivisor row, inner;                             // units of a row; rows of an outer step
  unsigned units;                                        // of all rows, less than 2^31
  unsigned first_tile;                                   // among those of the batch
  unsigned steps;
  float add[2];
  unsigned char kind, from_bytes, to_bytes;  // of a unit
};

constexpr int kScatterCopies = 42;

struct ScatterBatch {
  int count;
  unsigned tiles;
  ScatterCopy copies[kScatterCopies];
};

// What a kernel may be given in every version of CUDA.
static_assert(sizeof(ScatterBatch) <= 4096, "a batch is too large to be given by value");

}  // namespace mckpt::impl
