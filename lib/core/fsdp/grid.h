// Grid: the parallel sizes of a training run. Cell: the coordinates of one rank in it. Megatron arranges the
// ranks in two ways:
//
//   stage = rank / S, r = rank % S, S = tp*cp*dp ranks a pipeline stage
//   dense mesh    tp = r % TP          cp = r / TP % CP        dp  = r / (TP*CP)
//   expert mesh   etp = r % ETP        ep = r / ETP % EP       edp = r / (ETP*EP)
//
// FSDP shards dense parameters over dp x cp (cp fastest) and experts over edp. With hsdp = O instances either
// group is cut into O blocks of I consecutive ranks (outer index / I, inner index % I).
#pragma once

#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

// How the HSDP instances of a buffer are related: each has a copy of it, or each has a part of it.
enum class HsdpOuter { kReplicate, kShard };

// The sizes of all dimensions. Expert sizes (ep, etp) arrange the same ranks again; they do not multiply the
// world.
struct Grid {
  i64 tp = 1, cp = 1, ep = 1, etp = 1, pp = 1;
  i64 dp = 1;    // without cp, including hsdp
  i64 hsdp = 1;  // FSDP instances
  HsdpOuter outer = HsdpOuter::kReplicate;

  i64 stage_ranks() const { return tp * cp * dp; }
  i64 world() const { return pp * stage_ranks(); }
  i64 edp() const { return stage_ranks() / (etp * ep); }
  friend bool operator==(const Grid&, const Grid&) = default;
};

// Throws kBadGrid with the sizes that are not positive or do not divide, kSizeOverflow beyond 63 bits. All
// functions below expect a grid that passed this check.
void check_grid(const Grid& grid);

// The smallest dp for which etp*ep divides the stage and hsdp divides both groups; grid.dp is ignored.
i64 smallest_dp(const Grid& grid);

// The coordinates of one rank, in both meshes.
struct Cell {
  i64 rank = 0, pp = 0;
  i64 tp = 0, cp = 0, dp = 0;    // dense mesh
  i64 etp = 0, ep = 0, edp = 0;  // expert mesh
  friend bool operator==(const Cell&, const Cell&) = default;
};

// Throws kBadRank.
Cell cell_of(const Grid& grid, i64 rank);

// The place of a rank among the ranks that share one flat buffer.
struct FsdpPlace {
  i64 world = 1;    // the number of shards of the buffer
  i64 shard = 0;    // the shard of this rank
  i64 replica = 0;  // the number of this copy of the shard; coverage counts replica 0 only
  i64 outer = 0, inner = 0;
  friend bool operator==(const FsdpPlace&, const FsdpPlace&) = default;
};

// The place of a rank in the buffers of dense parameters (expert_place: of experts) of its stage.
FsdpPlace dense_place(const Grid& grid, const Cell& cell);
FsdpPlace expert_place(const Grid& grid, const Cell& cell);
// The place of the d-th of `ranks` ranks that share a buffer. pre: hsdp divides ranks, 0 <= d < ranks.
FsdpPlace place_of(i64 d, i64 ranks, i64 hsdp, HsdpOuter outer);

std::string to_string(const Grid& grid);  // "tp=2 cp=1 ep=4 etp=1 pp=1 dp=2", hsdp only where there is any

}  // namespace mckpt::impl
