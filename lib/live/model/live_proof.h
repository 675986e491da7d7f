// The proof of what is done with a live model. Every rank carries out a part; whether the parts of all ranks are the
// whole is proved once, by rank 0, while the others wait: no rank reads or writes anything before.
#pragma once

#include "convert/plan/conversion.h"
#include "runtime/comm/comm.h"

namespace mckpt::impl {

// Collective. Rank 0 throws what prove() throws; the others then end as ranks do when one is lost.
inline void prove_on_rank_0(Conversion& conversion, Comm& world, int threads) {
  if (world.rank() == 0) prove(conversion, threads);
  world.barrier();
}

}  // namespace mckpt::impl
