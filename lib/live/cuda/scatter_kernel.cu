// The kernel that carries out a ScatterBatch (live/cuda/scatter_batch.h). Conversions give exactly the bits
// of lib/core/items/item_cast.cc, also for NaNs. The arithmetic of a GPU makes other NaNs than a
// CPU, so wherever a NaN can result, its bits are made here.
//
//   block b    tile b of the batch: finds its copy by a binary search over first_tile
//   thread t   units t, t + 256, t + 512, t + 768 of the tile: neighbouring threads move neighbouring units
//
// This file is compiled at run time, with scatter_batch.h before it and no other header, and by the host's
// compiler in tests.
namespace mckpt::impl::scatter_kernel {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

// The unit of kCopy16, which a thread loads and stores with one instruction.
struct alignas(16) Bytes16 {
  u64 low, high;
};
template <typename Bits>
struct alignas(16) Eight {
  Bits at[8];
};

__device__ inline bool is_nan(float f) { return (__float_as_uint(f) & 0x7fffffff) > 0x7f800000; }
__device__ inline bool is_nan(double d) {
  return (static_cast<u64>(__double_as_longlong(d)) & 0x7fffffffffffffff) > 0x7ff0000000000000;
}
// The NaN with the bit set that makes it quiet; its other bits are kept.
__device__ inline float quiet(float nan) { return __uint_as_float(__float_as_uint(nan) | 0x00400000); }
__device__ inline double quiet(double nan) {
  return __longlong_as_double(__double_as_longlong(nan) | 0x0008000000000000);
}

// A sum with the NaN of a CPU: a NaN operand is passed on, made quiet; infinity minus infinity is a negative
// NaN.
__device__ inline float sum(float a, float b) {
  float s = a + b;
  if (!is_nan(s)) return s;
  if (is_nan(a)) return quiet(a);
  return is_nan(b) ? quiet(b) : __uint_as_float(0xffc00000);
}
__device__ inline double sum(double a, double b) {
  double s = a + b;
  if (!is_nan(s)) return s;
  if (is_nan(a)) return quiet(a);
  return is_nan(b) ? quiet(b) : __longlong_as_double(static_cast<long long>(0xfff8000000000000));
}

// bf16 is the upper half of an fp32. To bf16: adds half of the last kept bit, minus one unit if that bit is
// 0, and cuts; this rounds to nearest, ties to even. A NaN is made quiet, so that cutting does not make it an
// infinity.
__device__ inline float from_bf16(u32 h) { return __uint_as_float(h << 16); }

__device__ inline u32 to_bf16(float f) {
  u32 bits = __float_as_uint(f);
  return (is_nan(f) ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16) & 0xffff;
}

// fp16 has 5 bits of exponent (bias 15) and 10 of mantissa, fp32 has 8 (bias 127) and 23: the exponent moves
// by 112, the mantissa by 13 bits. A subnormal fp16 is mantissa * 2^-24, which is exact in fp32.
__device__ inline float from_f16(u32 h) {
  u32 sign = (h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 0x3ff;
  if (exponent == 31) return __uint_as_float(sign | 0x7f800000 | mantissa << 13);
  if (exponent == 0)
    return __uint_as_float(sign | __float_as_uint(static_cast<float>(mantissa) * 5.9604644775390625e-8f));
  return __uint_as_float(sign | (exponent + 112) << 23 | mantissa << 13);
}

// The limits are fp32 bits: 0x477ff000 is 65520, from which on fp16 rounds to infinity; 0x38800000 is 2^-14,
// below which fp16 is subnormal.
__device__ inline u32 to_f16(float f) {
  u32 bits = __float_as_uint(f), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00 | (magnitude >> 13 & 0x3ff);
  if (magnitude >= 0x477ff000) return sign | 0x7c00;
  // Subnormal: adding 0.5 leaves the value, rounded to multiples of 2^-24, in the low bits.
  if (magnitude < 0x38800000) return sign | (__float_as_uint(__uint_as_float(magnitude) + 0.5f) - 0x3f000000);
  return sign | (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
}

// A conversion between fp64 and fp32 by the GPU, except for NaNs: they keep their sign and the upper bits of
// their mantissa, as on the host.
__device__ inline float from_f64(u64 bits) {
  double d = __longlong_as_double(static_cast<long long>(bits));
  if (!is_nan(d)) return static_cast<float>(d);
  return __uint_as_float(static_cast<u32>(bits >> 32 & 0x80000000) | 0x7fc00000 |
                         static_cast<u32>(bits >> 29 & 0x3fffff));
}

__device__ inline u64 to_f64(float f) {
  if (!is_nan(f)) return static_cast<u64>(__double_as_longlong(static_cast<double>(f)));
  u64 bits = __float_as_uint(f);
  return (bits & 0x80000000) << 32 | 0x7ff8000000000000 | (bits & 0x3fffff) << 29;
}

// The values of the items in `bits`, read as `type`. kMost is the last type that can occur, so that code for
// wider types is not generated.
template <int kItems, ScatterType kMost, typename Bits>
__device__ inline void read_values(u32 type, const Bits (&bits)[kItems], float (&values)[kItems]) {
  if (type == kScatterBF16)
    for (int i = 0; i < kItems; i++) values[i] = from_bf16(static_cast<u32>(bits[i]));
  else if (type == kScatterF16)
    for (int i = 0; i < kItems; i++) values[i] = from_f16(static_cast<u32>(bits[i]));
  else if (type == kScatterF32 || kMost == kScatterF32)
    for (int i = 0; i < kItems; i++) values[i] = __uint_as_float(static_cast<u32>(bits[i]));
  else
    for (int i = 0; i < kItems; i++) values[i] = from_f64(bits[i]);
}

template <int kItems, ScatterType kMost, typename Bits>
__device__ inline void write_values(u32 type, const float (&values)[kItems], Bits (&bits)[kItems]) {
  if (type == kScatterBF16)
    for (int i = 0; i < kItems; i++) bits[i] = to_bf16(values[i]);
  else if (type == kScatterF16)
    for (int i = 0; i < kItems; i++) bits[i] = to_f16(values[i]);
  else if (type == kScatterF32 || kMost == kScatterF32)
    for (int i = 0; i < kItems; i++) bits[i] = __float_as_uint(values[i]);
  else
    for (int i = 0; i < kItems; i++) bits[i] = static_cast<Bits>(to_f64(values[i]));
}

// Carries out the steps of a conversion on kItems items at once. A sum of two doubles is computed in doubles,
// every other sum in floats, as cast_items() does.
template <int kItems, ScatterType kMost, typename Bits>
__device__ inline void convert(const ScatterCopy& c, Bits (&bits)[kItems]) {
  for (u32 steps = c.steps; steps != 0; steps >>= 8) {
    u32 from = steps >> kStepFrom & 3, to = steps >> kStepTo & 3, added = steps >> kStepAdd & 3;
    float addend = added == 2 ? c.add[1] : c.add[0];
    if (kMost == kScatterF64 && from == kScatterF64 && to == kScatterF64) {
      for (int i = 0; i < kItems; i++)
        bits[i] = static_cast<Bits>(__double_as_longlong(
            sum(__longlong_as_double(static_cast<long long>(bits[i])), static_cast<double>(addend))));
      continue;
    }
    float values[kItems];
    read_values<kItems, kMost>(from, bits, values);
    if (added != 0)
      for (int i = 0; i < kItems; i++) values[i] = sum(values[i], addend);
    write_values<kItems, kMost>(to, values, bits);
  }
}

template <typename Item>
__device__ inline Item load(const u8* at) {
  return *reinterpret_cast<const Item*>(at);
}
template <typename Item>
__device__ inline void store(u8* at, Item item) {
  *reinterpret_cast<Item*>(at) = item;
}

// kConvert1: one item of 2 or 4 bytes on either side.
__device__ inline void convert_one(const ScatterCopy& c, const u8* from, u8* to) {
  u32 bits[1] = {c.from_bytes == 2 ? load<u16>(from) : load<u32>(from)};
  convert<1, kScatterF32>(c, bits);
  if (c.to_bytes == 2)
    store(to, static_cast<u16>(bits[0]));
  else
    store(to, bits[0]);
}

// kConvertWide: one item of 2, 4 or 8 bytes on either side.
__device__ inline void convert_wide(const ScatterCopy& c, const u8* from, u8* to) {
  u64 bits[1] = {c.from_bytes == 2 ? load<u16>(from) : c.from_bytes == 4 ? load<u32>(from) : load<u64>(from)};
  convert<1, kScatterF64>(c, bits);
  if (c.to_bytes == 2)
    store(to, static_cast<u16>(bits[0]));
  else if (c.to_bytes == 4)
    store(to, static_cast<u32>(bits[0]));
  else
    store(to, bits[0]);
}

// Converts an item at any address, byte by byte: a GPU loads and stores only at multiples of the size. The
// loops are written so that the kernel needs 32 registers, with which the GPU runs as many threads at a time
// as it can.
__device__ inline void convert_bytes(const ScatterCopy& c, const u8* from, u8* to) {
  u64 bits[1] = {0};
  for (u32 i = c.from_bytes; i-- > 0;) bits[0] = bits[0] << 8 | from[i];
  convert<1, kScatterF64>(c, bits);
  for (u32 i = 0; i < c.to_bytes; i++, bits[0] >>= 8) to[i] = static_cast<u8>(bits[0]);
}

// kConvert8: eight items of 2 or 4 bytes, loaded and stored 16 or 32 bytes at a time.
__device__ inline void convert_eight(const ScatterCopy& c, const u8* from, u8* to) {
  u32 bits[8];
  if (c.from_bytes == 16) {
    Eight<u16> in = load<Eight<u16>>(from);
    for (int i = 0; i < 8; i++) bits[i] = in.at[i];
  } else {
    Eight<u32> in = load<Eight<u32>>(from);
    for (int i = 0; i < 8; i++) bits[i] = in.at[i];
  }
  convert<8, kScatterF32>(c, bits);
  if (c.to_bytes == 16) {
    Eight<u16> out;
    for (int i = 0; i < 8; i++) out.at[i] = static_cast<u16>(bits[i]);
    store(to, out);
  } else {
    Eight<u32> out;
    for (int i = 0; i < 8; i++) out.at[i] = bits[i];
    store(to, out);
  }
}

// n / d without a division; see ScatterDivisor.
__device__ inline u32 quotient(u32 n, const ScatterDivisor& d) {
  return static_cast<u32>(static_cast<u64>(n) * d.multiplier >> 31 >> d.shift);
}

// The two addresses of a unit. place_of() takes the number of a unit apart into loops and a place in its row.
struct Place {
  const u8* from;
  u8* to;
};

__device__ inline Place place_of(const ScatterCopy& c, u32 unit) {
  u32 row = quotient(unit, c.row), at = unit - row * c.row.value;
  u32 outer = quotient(row, c.inner), inner = row - outer * c.inner.value;
  return {c.from + outer * c.outer_from + inner * c.inner_from + static_cast<u64>(at) * c.from_bytes,
          c.to + outer * c.outer_to + inner * c.inner_to + static_cast<u64>(at) * c.to_bytes};
}

// Copies the units of one thread. All are read before the first is written, so that their delays overlap.
template <typename Unit>
__device__ inline void copy_units(const ScatterCopy& c, u32 first) {
  Unit units[kScatterUnitsPerThread];
  u8* to[kScatterUnitsPerThread];
  for (u32 i = 0; i < kScatterUnitsPerThread; i++) {
    u32 unit = first + i * kScatterThreads;
    if (unit >= c.units) continue;
    Place p = place_of(c, unit);
    units[i] = load<Unit>(p.from);
    to[i] = p.to;
  }
  for (u32 i = 0; i < kScatterUnitsPerThread; i++)
    if (first + i * kScatterThreads < c.units) store(to[i], units[i]);
}

// Converts the units of one thread, one after the other.
template <typename Fn>
__device__ inline void convert_units(const ScatterCopy& c, u32 first, Fn convert_unit) {
  for (u32 i = 0; i < kScatterUnitsPerThread; i++) {
    u32 unit = first + i * kScatterThreads;
    if (unit >= c.units) return;
    Place p = place_of(c, unit);
    convert_unit(c, p.from, p.to);
  }
}

// The copy of a tile: the last one whose first tile is not after it.
__device__ inline const ScatterCopy& copy_of(const ScatterBatch& batch, u32 tile) {
  int low = 0, high = batch.count;
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (batch.copies[middle].first_tile <= tile)
      low = middle;
    else
      high = middle;
  }
  return batch.copies[low];
}

// The kernel. Grid: one block for each tile of the batch, kScatterThreads threads in a block.
extern "C" __global__ void __launch_bounds__(kScatterThreads)
    mckpt_scatter(const __grid_constant__ ScatterBatch batch) {
  const ScatterCopy& c = copy_of(batch, blockIdx.x);
  u32 first = (blockIdx.x - c.first_tile) * kScatterTile + threadIdx.x;
  switch (c.kind) {
    case kCopy1:
      return copy_units<u8>(c, first);
    case kCopy2:
      return copy_units<u16>(c, first);
    case kCopy4:
      return copy_units<u32>(c, first);
    case kCopy8:
      return copy_units<u64>(c, first);
    case kCopy16:
      return copy_units<Bytes16>(c, first);
    case kConvert1:
      return convert_units(c, first, convert_one);
    case kConvert8:
      return convert_units(c, first, convert_eight);
    case kConvertWide:
      return convert_units(c, first, convert_wide);
    default:
      return convert_units(c, first, convert_bytes);
  }
}

}  // namespace mckpt::impl::scatter_kernel
