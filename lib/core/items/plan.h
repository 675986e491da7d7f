// Plan: the ordered moves from regions of source files to regions of destination files. A region is a piece
// of one tensor that is stored in row-major order; moves speak of items within it, and its place in the file
// gives the bytes. When finish() returns, every item of every destination is known to be written exactly
// once.
//
//   source region     file 0, byte 3352, 512 items of 2 bytes      q_proj, 32 rows of 16 items
//   destination       file 2, byte  832, 320 items of 2 bytes      the chunk of a rank, 20 rows
//   move              copy [192+64] -> [0+64]                      rows 12 to 15 of q_proj are its first rows
//
// A plan is made from headers alone. Whether it reads what it should is proved elsewhere
// (convert/jobs/proof.h).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/items/move.h"

namespace mckpt::impl {

class Error;

// A piece of a tensor in a file.
struct Region {
  i32 file = 0;
  i64 offset = 0;  // bytes, of its first item
  i64 items = 0;
  i32 item_bytes = 1;
  i32 tensor = -1;  // for messages; index into whatever the caller names tensors by
};

// Names the tensor of the result that a destination is a piece of, for messages.
class RegionNames {
 public:
  virtual ~RegionNames() = default;
  virtual std::string tensor_of(const Region&) const { return {}; }
};

// A move and the regions that it connects.
struct PlannedMove {
  i32 destination = 0;  // region
  Move move;            // move.slot is the source region
};

// Built once (add_source, add_destination, add), finished once, and constant from then on, so that threads
// may share it.
class Plan {
 public:
  // The names, if any, outlive the plan.
  explicit Plan(const RegionNames* names = nullptr) : names_(names) {}

  // Each returns the region's index. Throws kBadShape for negative sizes, kSizeOverflow when the end is
  // beyond 63 bits.
  i32 add_source(const Region& region) { return add_region(sources_, region); }
  i32 add_destination(const Region& region) { return add_region(destinations_, region); }

  // Throws kBadRun when either side leaves its region or visits an item twice.
  void add(i32 destination, const Move& move);

  // Joins neighbours, proves that each destination item is written once (else throws kNotTiled), and puts the
  // moves in the order of the source files, so that sources are read once and forwards.
  void finish();

  // From here on: after finish().
  std::span<const PlannedMove> moves() const { return moves_; }
  const Region& source(i32 region) const { return sources_[region]; }
  const Region& destination(i32 region) const { return destinations_[region]; }
  i32 destination_count() const { return static_cast<i32>(destinations_.size()); }
  // The file offset of the first byte that a move reads; -1 for zeros.
  i64 source_byte(const PlannedMove& move) const;

 private:
  static i32 add_region(std::vector<Region>& regions, const Region& region);
  void join_neighbours();
  void prove() const;
  Error with_name(Error e, i32 destination) const;

  const RegionNames* names_;
  std::vector<Region> sources_, destinations_;
  std::vector<PlannedMove> moves_;
};

}  // namespace mckpt::impl
