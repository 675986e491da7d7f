// Collects moves, joins neighbours, and proves with tiling.h that every destination item is written once.
//
//   add()      move into destination 0: [0+4]      checked: inside both regions
//   add()      move into destination 0: [4+4]
//   finish()   sort by destination and place, join to [0+8], prove that [0+8] tiles the 8 items of destination 0,
//              then sort by source file and byte: the order in which a disk reads best
//
// Costs n log n steps for n moves. Moves of one destination must be neighbours for the proof, so the proof is
// done before the moves are sorted by source.
#include "core/items/plan.h"

#include <algorithm>
#include <tuple>

#include "core/base/error.h"
#include "core/items/item_run.h"
#include "core/items/tiling.h"

namespace mckpt::impl {

i32 Plan::add_region(std::vector<Region>& regions, const Region& r) {
  if (r.offset < 0 || r.items < 0 || r.item_bytes < 1)
    throw Error(Code::kBadShape, "a region of a file has a negative size")
        .found(cat("offset ", r.offset, ", ", r.items, " items of ", r.item_bytes, " bytes"));
  checked_add(r.offset, checked_mul(r.items, r.item_bytes, "a file region"), "the end of a file region");
  regions.push_back(r);
  return static_cast<i32>(regions.size() - 1);
}

void Plan::add(i32 destination, const Move& move) {
  try {
    check_run(move.destination(), this->destination(destination).items);
    if (move.kind != MoveKind::kZero) check_run(move.source(), source(move.slot).items);
  } catch (const Error& e) {
    throw with_name(e, destination);
  }
  if (move.items() > 0) moves_.push_back({destination, move});
}

// The two sorts are the order of the proof and the order of the work.
void Plan::finish() {
  std::sort(moves_.begin(), moves_.end(), [](const PlannedMove& a, const PlannedMove& b) {
    return std::tie(a.destination, a.move.to) < std::tie(b.destination, b.move.to);
  });
  join_neighbours();
  prove();
  std::sort(moves_.begin(), moves_.end(), [&](const PlannedMove& a, const PlannedMove& b) {
    auto place = [&](const PlannedMove& m) {
      i32 file = m.move.kind == MoveKind::kZero ? -1 : source(m.move.slot).file;
      return std::tuple(file, source_byte(m), m.destination, m.move.to);
    };
    return place(a) < place(b);
  });
}

void Plan::join_neighbours() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < moves_.size(); i++) {
    bool joined = kept > 0 && moves_[kept - 1].destination == moves_[i].destination &&
                  join(moves_[kept - 1].move, moves_[i].move);
    if (!joined) moves_[kept++] = moves_[i];
  }
  moves_.resize(kept);
}

// pre: moves are sorted by destination.
void Plan::prove() const {
  auto next = moves_.begin();
  std::vector<ItemRun> runs;
  for (std::size_t region = 0; region < destinations_.size(); region++) {
    runs.clear();
    for (; next != moves_.end() && next->destination == static_cast<i32>(region); next++)
      if (next->move.kind != MoveKind::kEqual) runs.push_back(next->move.destination());
    if (auto fault = tiling_fault(runs, destinations_[region].items))
      throw with_name(
          Error(Code::kNotTiled, cat("item ", fault->item, " of a piece of the result ",
                                     fault->times == 0 ? "is written by no move" : "is written twice"))
              .expected(cat("each of ", destinations_[region].items, " items written once"))
              .found(cat(items_of(runs), " items written")),
          static_cast<i32>(region));
  }
}

// The error with the name of the tensor that the region is a piece of, if the caller gave names.
Error Plan::with_name(Error e, i32 region) const {
  if (std::string name = names_ ? names_->tensor_of(destination(region)) : ""; !name.empty())
    e.default_tensor(name);
  return e;
}

i64 Plan::source_byte(const PlannedMove& m) const {
  if (m.move.kind == MoveKind::kZero) return -1;
  const Region& r = source(m.move.slot);
  return r.offset + m.move.from * r.item_bytes;
}

}  // namespace mckpt::impl
