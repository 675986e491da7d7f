// Saving: the stored weights that one rank has into its part of an fsdp_dtensor checkpoint, whose layout is that
// of the same grid. What other ranks write is theirs.
#pragma once

#include <span>

#include "core/base/int.h"

namespace mckpt::impl {

class ChunkJob;
class DcpLayout;
class KeyTable;
class LiveModel;

// The layout's keys are those of the table, in another order: table_key[k] is key k of the layout. All outlive
// the job. pre: the model is loaded. Throws kInternal when it is sharded in another way than the layout.
ChunkJob save_job(const LiveModel& model, const KeyTable& keys, const DcpLayout& layout,
                  std::span<const i32> table_key);

}  // namespace mckpt::impl
