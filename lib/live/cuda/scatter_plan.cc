// How a strided copy is cut into units of up to 16 bytes, as wide as addresses, lengths and strides allow.
// The widest power of two that divides all of them is the number of trailing zero bits of their bitwise or:
//
//   from 0x...40, to 0x...80, length 96, strides 128   -->  or = ...e0, 5 zero bits: 32, so units of 16 bytes
#include "live/cuda/scatter_plan.h"

#include <bit>
#include <utility>

#include "core/items/dtype.h"
#include "core/items/item_cast.h"
#include "core/items/move.h"
#include "live/device/device.h"

namespace mckpt::impl {
namespace {

// A copy of equal effect with the fewest loops and the longest rows. The loop with the smaller stride on the
// written side becomes the inner one, because the speed depends most on threads that write side by side.
ItemCopy simplified(ItemCopy c) {
  if (c.outer.count == 1) c.outer = {};
  if (c.inner.count == 1) c.inner = std::exchange(c.outer, {});
  if (c.inner.to_stride > c.outer.to_stride && c.outer.count > 1) std::swap(c.inner, c.outer);
  auto continues = [&] {
    return c.inner.count > 1 && c.inner.from_stride == c.length && c.inner.to_stride == c.length;
  };
  while (continues()) {
    c.length *= c.inner.count;
    c.inner = std::exchange(c.outer, {});
  }
  return c;
}

ScatterType scatter_type(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return kScatterBF16;
    case DType::kF16:
      return kScatterF16;
    case DType::kF32:
      return kScatterF32;
    default:
      return kScatterF64;
  }
}

// The steps of cast_items() for this cast, without those that change nothing.
u32 steps_of(const ItemCast& c) {
  u32 steps = 0, shift = 0;
  auto step = [&](DType from, DType to, u32 add) {
    steps |= static_cast<u32>(kStep | u32{scatter_type(from)} << kStepFrom |
                              u32{scatter_type(to)} << kStepTo | add << kStepAdd)
             << shift;
    shift += 8;
  };
  // A step adds in floats unless both of its types are doubles.
  auto sum = [&](DType from, DType to, float addend, u32 add) {
    bool in_doubles = addend != 0 && (from == DType::kF64 || to == DType::kF64);
    if (in_doubles && from != DType::kF64) step(from, DType::kF64, 0);
    if (in_doubles) step(DType::kF64, DType::kF64, add), from = DType::kF64;
    if (!in_doubles && addend != 0)
      step(from, to, add);
    else if (from != to)
      step(from, to, 0);
  };
  sum(c.from, c.via, c.add_before, 1);
  sum(c.via, c.to, c.add_after, 2);
  return steps;
}

// A copy in units: the kind of its units, the rows and loops in units and bytes, and for a conversion its
// steps.
struct Piece {
  ScatterKind kind = kCopy1;
  u32 steps = 0;
  float add_before = 0, add_after = 0;
  i64 from_bytes = 0, to_bytes = 0;  // of a unit
  const u8* from = nullptr;
  u8* to = nullptr;
  i64 row = 0;                      // units
  MoveLoop inner = {}, outer = {};  // strides in bytes

  i64 units() const { return row * inner.count * outer.count; }
};

// The bitwise or of all addresses and strides: its trailing zero bits give the alignment of every row on both
// sides.
u64 common_bits(const Piece& p) {
  u64 bits = reinterpret_cast<u64>(p.from) | reinterpret_cast<u64>(p.to);
  for (const MoveLoop* loop : {&p.inner, &p.outer})
    if (loop->count > 1) bits |= static_cast<u64>(loop->from_stride) | static_cast<u64>(loop->to_stride);
  return bits;
}

MoveLoop in_bytes(const MoveLoop& loop, i64 from_item, i64 to_item) {
  return {loop.from_stride * from_item, loop.to_stride * to_item, loop.count};
}

// Chooses the units of a copy. Without a cast, the widest that divides all addresses, strides and the row's
// length; with a cast, eight items at once if both sides are aligned to 16 bytes and rows are multiples of
// eight.
Piece in_units(const ItemCopy& c) {
  const ItemCast& v = c.cast;
  i64 from = dtype_bytes(v.from, 1), to = dtype_bytes(v.to, 1);
  Piece p;
  p.from = c.from, p.to = c.to;
  p.inner = in_bytes(c.inner, from, to), p.outer = in_bytes(c.outer, from, to);
  u64 places = common_bits(p);
  if (v.identity()) {
    int log2 = std::countr_zero(places | static_cast<u64>(c.length * from) | 16);
    p.kind = static_cast<ScatterKind>(kCopy1 + log2);
    p.from_bytes = p.to_bytes = i64{1} << log2;
    p.row = c.length * from >> log2;
    return p;
  }
  // Strides are whole items, so all items are aligned if the first one is.
  bool aligned = reinterpret_cast<u64>(p.from) % static_cast<u64>(from) == 0 &&
                 reinterpret_cast<u64>(p.to) % static_cast<u64>(to) == 0;
  bool wide = v.from == DType::kF64 || v.via == DType::kF64 || v.to == DType::kF64;
  i64 items = !wide && places % 16 == 0 && c.length % 8 == 0 ? 8 : 1;
  p.kind = !aligned ? kConvertBytes : wide ? kConvertWide : items == 8 ? kConvert8 : kConvert1;
  p.steps = steps_of(v), p.add_before = v.add_before, p.add_after = v.add_after;
  p.from_bytes = items * from, p.to_bytes = items * to;
  p.row = c.length / items;
  return p;
}

// The part [begin, begin + count) of a copy that is too large for one: of its outer loop, or of its inner
// loop if it has no outer one, or of its row.
Piece part_of(Piece p, i64 begin, i64 count) {
  MoveLoop* loop = p.outer.count > 1 ? &p.outer : p.inner.count > 1 ? &p.inner : nullptr;
  p.from += begin * (loop ? loop->from_stride : p.from_bytes);
  p.to += begin * (loop ? loop->to_stride : p.to_bytes);
  (loop ? loop->count : p.row) = count;
  return p;
}

// Collects copies into a batch and launches the batch when it is full.
class Batcher {
 public:
  Batcher(const std::function<void(const ScatterBatch&)>& launch, i64 most_units)
      : launch_(launch), most_units_(most_units) {}

  void add(const Piece& p) {
    if (p.units() >= most_units_) {
      i64 count = p.outer.count > 1 ? p.outer.count : p.inner.count > 1 ? p.inner.count : p.row;
      add(part_of(p, 0, count / 2));
      return add(part_of(p, count / 2, count - count / 2));
    }
    if (batch_.count == kScatterCopies) flush();
    batch_.copies[batch_.count++] = laid_out(p);
    batch_.tiles += static_cast<u32>(ceil_div(p.units(), kScatterTile));
  }

  void flush() {
    if (batch_.count > 0) launch_(batch_);
    batch_.count = 0, batch_.tiles = 0;
  }

 private:
  // The copy as the kernel reads it, with the divisors of its loops and its first tile in the present batch.
  ScatterCopy laid_out(const Piece& p) const {
    ScatterCopy c{};
    c.from = p.from, c.to = p.to;
    c.inner_from = p.inner.from_stride, c.inner_to = p.inner.to_stride;
    c.outer_from = p.outer.from_stride, c.outer_to = p.outer.to_stride;
    c.row = scatter_divisor(p.row), c.inner = scatter_divisor(p.inner.count);
    c.units = static_cast<u32>(p.units());
    c.first_tile = batch_.tiles;
    c.steps = p.steps;
    c.add[0] = p.add_before, c.add[1] = p.add_after;
    c.kind = p.kind;
    c.from_bytes = static_cast<u8>(p.from_bytes), c.to_bytes = static_cast<u8>(p.to_bytes);
    return c;
  }

  const std::function<void(const ScatterBatch&)>& launch_;
  i64 most_units_;
  ScatterBatch batch_{};
};

}  // namespace

ScatterDivisor scatter_divisor(i64 d) {
  u32 shift = static_cast<u32>(std::bit_width(static_cast<u64>(d - 1)));
  return {static_cast<u32>(d), static_cast<u32>(ceil_div(i64{1} << (31 + shift), d)), shift};
}

void for_each_batch(std::span<const ItemCopy> copies, const std::function<void(const ScatterBatch&)>& launch,
                    i64 most_units) {
  Batcher batcher(launch, most_units);
  for (const ItemCopy& c : copies)
    if (c.items() > 0) batcher.add(in_units(simplified(c)));
  batcher.flush();
}

}  // namespace mckpt::impl
