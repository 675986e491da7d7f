// AllChunks: which rank stores which box of which parameter, for all ranks of a live model. Every rank works it
// out from the grid alone, so that a plan over all ranks needs no message.
//
//   rank 0   linear_qkv rows 0-11     linear_proj rows 0-7
//   rank 1   linear_qkv rows 12-31    linear_proj rows 8-15
//
// LiveChunks (live/model/chunks.h) are the chunks of one rank, with the memory that they are in.
#pragma once

#include "convert/keys/fsdp_plan.h"
#include "convert/keys/stored_chunks.h"

namespace mckpt::impl {

class LiveModel;

// The grid and the setup of the model.
FsdpRun run_of(const LiveModel& model);

struct AllChunks {
  // `keys`: live_keys() of the model. `saved`: throws where ranks can hold a layout that no checkpoint can have.
  // Both outlive this.
  AllChunks(const LiveModel& model, const KeyTable& keys, bool saved = false);

  FsdpPlan plan;
  PlannedChunks chunks;
};

}  // namespace mckpt::impl
