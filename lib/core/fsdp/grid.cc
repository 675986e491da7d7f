// Checks parallel sizes, and computes the place of a rank in both meshes and in its buffer.
//
//   tp=2 cp=1 ep=2 etp=1 pp=1 dp=2: 4 ranks
//
//   rank                  0  1  2  3
//   tp, dp                00 10 01 11     ranks 0 and 2 share a dense buffer
//   ep, edp               00 10 01 11     ranks 0 and 2 share the experts of ep 0
//
//   4 ranks of a buffer, hsdp=2:      d  0  1  2  3
//   replicate   2 shards              s  0  1  0  1      ranks 2 and 3 are replicas of ranks 0 and 1
//   shard       4 shards              s  0  2  1  3      the inner index is the major one
#include "core/fsdp/grid.h"
#include "core/base/error.h"

#include <numeric>

namespace mckpt::impl {
namespace {

[[noreturn]] void refuse(const Grid& grid, std::string why, i64 whole, i64 part, const char* help) {
  throw Error(Code::kBadGrid, std::move(why))
      .expected(cat("a multiple of ", part))
      .found(whole)
      .note(cat("the grid is ", to_string(grid)))
      .help(help);
}

}  // namespace

void check_grid(const Grid& g) {
  const std::pair<const char*, i64> sizes[] = {{"tp", g.tp}, {"cp", g.cp}, {"ep", g.ep},    {"etp", g.etp},
                                               {"pp", g.pp}, {"dp", g.dp}, {"hsdp", g.hsdp}};
  for (auto [name, size] : sizes)
    if (size < 1) throw Error(Code::kBadGrid, cat("`", name, "` must be at least 1")).found(size);
  i64 stage = checked_mul(checked_mul(g.tp, g.cp, "tp*cp"), g.dp, "tp*cp*dp");
  checked_mul(stage, g.pp, "the size of the world");
  i64 expert = checked_mul(g.etp, g.ep, "etp*ep");
  if (stage % expert != 0)
    refuse(g, "the ranks of a stage (tp*cp*dp) do not divide by etp*ep", stage, expert,
           "choose another `dp`, `ep` or `etp`");
  if (g.dp % g.hsdp != 0)
    refuse(g, "dp does not divide by hsdp", g.dp, g.hsdp, "choose another `dp` or `hsdp`");
  if (g.edp() % g.hsdp != 0)
    refuse(g, "the expert data parallel size (tp*cp*dp / (etp*ep)) does not divide by hsdp", g.edp(), g.hsdp,
           "choose another `dp` or `hsdp`");
}

// The search is one division: dp is a multiple of hsdp, and its other factor makes etp*ep divide tp*cp*dp.
i64 smallest_dp(const Grid& grid) {
  Grid g = grid;
  g.dp = g.hsdp;
  // The size of the world must be sane before the search begins.
  for (i64 size : {g.tp, g.cp, g.ep, g.etp, g.pp, g.hsdp})
    if (size < 1) check_grid(g);
  i64 expert = checked_mul(g.etp, g.ep, "etp*ep"), dense = checked_mul(g.tp, g.cp, "tp*cp");
  // dp = hsdp*k, and expert*hsdp | dense*hsdp*k, that is expert | dense*k.
  return checked_mul(g.hsdp, expert / std::gcd(expert, dense), "dp");
}

// The dense and the expert mesh divide the same ranks of a stage in two ways.
Cell cell_of(const Grid& g, i64 rank) {
  if (rank < 0 || rank >= g.world())
    throw Error(Code::kBadRank, "there is no such rank")
        .expected(cat("0 to ", g.world() - 1))
        .found(rank)
        .note(cat("the grid is ", to_string(g)));
  i64 r = rank % g.stage_ranks();
  Cell c;
  c.rank = rank;
  c.pp = rank / g.stage_ranks();
  c.tp = r % g.tp;
  c.cp = r / g.tp % g.cp;
  c.dp = r / (g.tp * g.cp);
  c.etp = r % g.etp;
  c.ep = r / g.etp % g.ep;
  c.edp = r / (g.etp * g.ep);
  return c;
}

FsdpPlace place_of(i64 d, i64 ranks, i64 hsdp, HsdpOuter outer) {
  i64 inner_size = ranks / hsdp;
  FsdpPlace p;
  p.outer = d / inner_size;
  p.inner = d % inner_size;
  if (outer == HsdpOuter::kShard) {
    p.world = ranks;
    p.shard = p.inner * hsdp + p.outer;  // the inner mesh dimension is the major one on disk
  } else {
    p.world = inner_size;
    p.shard = p.inner;
    p.replica = p.outer;
  }
  return p;
}

FsdpPlace dense_place(const Grid& g, const Cell& c) {
  return place_of(c.cp + g.cp * c.dp, g.cp * g.dp, g.hsdp, g.outer);
}

FsdpPlace expert_place(const Grid& g, const Cell& c) { return place_of(c.edp, g.edp(), g.hsdp, g.outer); }

std::string to_string(const Grid& g) {
  std::string out = cat("tp=", g.tp, " cp=", g.cp, " ep=", g.ep, " etp=", g.etp, " pp=", g.pp, " dp=", g.dp);
  if (g.hsdp != 1)
    out += cat(" hsdp=", g.hsdp, g.outer == HsdpOuter::kShard ? " (outer shard)" : " (outer replicate)");
  return out;
}

}  // namespace mckpt::impl
