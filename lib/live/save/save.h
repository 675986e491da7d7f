// Saving: the stored weights of one rank become its part of an fsdp_dtensor checkpoint, whose layout follows
// the model's grid. Every rank makes a job for the chunks that it writes.
//
//   LiveChunks (memory)   --pairs_job-->   PlannedChunks of this rank (__R_0.distcp)
#pragma once

#include <span>

#include "core/base/int.h"

namespace mckpt::impl {

class ChunkJob;
class DcpLayout;
class KeyTable;
class LiveModel;

// Waits for writes into the weights. The layout has the table's keys in another order: table_key[k] is key k
// of the layout. All arguments outlive the job. pre: the model is loaded. Throws kInternal if the
// model is sharded in another way than the layout.
ChunkJob save_job(const LiveModel& model, const KeyTable& keys, const DcpLayout& layout,
                  std::span<const i32> table_key);

}  // namespace mckpt::impl
