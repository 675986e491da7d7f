// The proof of a conversion from or into a live model. Every rank carries out a part; that the parts of all
// ranks are the whole is proved once, by rank 0, while the others wait: no rank reads or writes anything
// before.
#pragma once

#include "convert/plan/conversion.h"
#include "runtime/comm/comm.h"

namespace mckpt::impl {

// Collective. Rank 0 throws what prove() throws; the others wait in the barrier, and are ended by the watch
// or the launcher when rank 0 has ended.
inline void prove_on_rank_0(Conversion& conversion, Comm& world, int threads) {
  if (world.rank() == 0) prove(conversion, threads);
  world.barrier();
}

// Likewise, of the job of all ranks. `all`: null on other ranks than 0.
inline void prove_on_rank_0(const CopyJob* all, ProofInput input, Comm& world, int threads) {
  input.threads = threads;
  if (all) prove(*all, input);
  world.barrier();
}

}  // namespace mckpt::impl
