// Move: a run and the places its items go to. Both sides are walked in lockstep:
//
//   for o, i, k:     item  to   + o*outer.to_stride   + i*inner.to_stride   + k
//     comes from     item  from + o*outer.from_stride + i*inner.from_stride + k
//
// Positions are counted in items: `from` in the source slot, `to` in the destination's own order. The kind
// says what is done to the items; only copies are one to one and can be undone.
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

struct ItemRange;
struct ItemRun;

enum class MoveKind : u8 {
  kCopy,
  kZero,  // fill with zeros (padding); the source side is not used
  kAdd,   // copy and add Move::addend (norm weights, from which one side subtracts 1)
};

// A loop on both sides at once: the same number of steps, a stride on each side.
struct MoveLoop {
  i64 from_stride = 0;
  i64 to_stride = 0;
  i64 count = 1;

  friend bool operator==(const MoveLoop&, const MoveLoop&) = default;
};

// One step of a plan; it says which items go where and nothing about files or bytes. `addend` is used by kAdd
// only.
struct Move {
  MoveKind kind = MoveKind::kCopy;
  i32 slot = 0;  // of the source
  float addend = 0;
  i64 from = 0;
  i64 to = 0;
  i64 length = 0;
  MoveLoop inner = {};
  MoveLoop outer = {};

  i64 items() const { return length * inner.count * outer.count; }
  ItemRun source() const;       // what is read
  ItemRun destination() const;  // what is written, as a run of slot 0

  friend bool operator==(const Move&, const Move&) = default;
};

// The move that writes the items of a run one after the other, beginning at `to`.
Move move_of(const ItemRun& run, i64 to);

// Appends the parts of a move whose source (or destination) items are in the window, in ascending order of
// that side. pre: that side is a valid run.
void clip_source(const Move& move, ItemRange window, std::vector<Move>& out);
void clip_destination(const Move& move, ItemRange window, std::vector<Move>& out);

// For two owners of one tensor: appends the moves that copy their common items from the local order of `from`
// to the local order of `to`. pre: both runs are valid and have the same slot.
void overlap(const ItemRun& from, const ItemRun& to, std::vector<Move>& out);

// If b continues a: makes a the move that does both, and returns true. [0+4] -> [0+4] and [4+4] -> [4+4] are
// joined to [0+8] -> [0+8].
bool join(Move& a, const Move& b);

std::string to_string(const Move& move);  // "copy [12+4 x3/10] -> [0+4 x3/4]"

}  // namespace mckpt::impl
