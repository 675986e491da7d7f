// What each rank found out while it wrote its share, brought together.
#pragma once

#include "core/base/error.h"
#include "io/copy/lost_values.h"
#include "io/copy/part_sums.h"
#include "io/copy/written_sums.h"
#include "runtime/comm/comm.h"

namespace mckpt::impl {

// Rank 0 gets the sums of all. Both are collective.
void gather_sums(WrittenSums& sums, Comm& ranks);
void gather_sums(PartSums& sums, Comm& ranks);

// Every rank gets the losses of all. Collective.
void gather_losses(LostValues& lost, Comm& ranks);

// kCastOverflow, with the tensors in which finite values would become infinite.
Error overflow_error(const LostValues& lost, const std::string& result);

}  // namespace mckpt::impl
