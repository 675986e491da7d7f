// AllChunks: which rank stores which box of which parameter, for all ranks of a live model. Every rank
// computes the same list from the grid alone, so that a plan over all ranks needs no message.
//
//   rank 0   linear_qkv rows 0-11     linear_proj rows 0-7
//   rank 1   linear_qkv rows 12-31    linear_proj rows 8-15
//
// LiveChunks (live/model/chunks.h) are the chunks of one rank, with the memory that they are in.
#pragma once

#include "convert/dialects/fsdp/plan.h"
#include "convert/keys/stored_chunks.h"

namespace mckpt::impl {

class KeyTable;
class LiveModel;
struct FsdpRun;

// The training run with the grid, the setup and the types of the model.
FsdpRun run_of(const LiveModel& model);

// The plan of the run and its chunks, which refer to each other: an AllChunks is not moved.
struct AllChunks {
  // `keys`: live_keys() of the model. `saved`: also throws for a layout that ranks can hold but no
  // checkpoint can contain. Model and keys outlive this object.
  AllChunks(const LiveModel& model, const KeyTable& keys, bool saved = false);

  FsdpPlan plan;
  PlannedChunks chunks;
};

}  // namespace mckpt::impl
