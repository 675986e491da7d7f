// Move: a run and the places its items go to. Source and destination are walked together:
//
//   for o, i, k:     item  to   + o*outer.to_stride   + i*inner.to_stride   + k
//     comes from     item  from + o*outer.from_stride + i*inner.from_stride + k
//
// Positions are counted in items: `from` in the source slot, `to` in the destination's own order. The kind
// says whether items are copied, filled with zeros or compared; what happens to their values is an ItemCast.
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

struct ItemRange;
struct ItemRun;

enum class MoveKind : u8 {
  kCopy,
  kZero,   // fill with zeros (padding); the source side is not used
  kAgain,  // copy items that another move copies too: the source has them once, the result twice
  kEqual,  // write nothing: the items of the source are those that other moves write to these places
};

// A loop on both sides at once: the same number of steps, a stride on each side.
struct MoveLoop {
  i64 from_stride = 0;
  i64 to_stride = 0;
  i64 count = 1;

  friend bool operator==(const MoveLoop&, const MoveLoop&) = default;
};

// One step of a plan; it says which items go where and nothing about files or bytes.
struct Move {
  MoveKind kind = MoveKind::kCopy;
  i32 slot = 0;  // of the source
  i64 from = 0;
  i64 to = 0;
  i64 length = 0;
  MoveLoop inner = {};
  MoveLoop outer = {};

  i64 items() const { return length * inner.count * outer.count; }
  ItemRun source() const;       // what is read
  ItemRun destination() const;  // what is written (kEqual: compared), as a run of slot 0

  friend bool operator==(const Move&, const Move&) = default;
};

// The move that writes the items of a run one after the other, beginning at `to`.
Move move_of(const ItemRun& run, i64 to);

// Appends the parts of a move whose source items (clip_source) or destination items (clip_destination) are in
// the window, in ascending order of these items. pre: the clipped side is a valid run.
void clip_source(const Move& move, ItemRange window, std::vector<Move>& out);
void clip_destination(const Move& move, ItemRange window, std::vector<Move>& out);

// For two owners of one tensor: appends the moves that copy their common items from the local order of `from`
// to the local order of `to`. pre: both runs are valid and have the same slot.
void overlap(const ItemRun& from, const ItemRun& to, std::vector<Move>& out);

// The move with source and destination exchanged. pre: a copy.
Move reversed(const Move& move);

// Extends a by b if b continues a; returns whether it did. [0+4] -> [0+4] and [4+4] -> [4+4] are joined to
// [0+8] -> [0+8].
bool join(Move& a, const Move& b);

std::string to_string(const Move& move);  // "copy [12+4 x3/10] -> [0+4 x3/4]"

}  // namespace mckpt::impl
