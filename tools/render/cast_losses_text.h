// What casts lost, gathered from all ranks and put into words: of a result that is published all the same,
// and of one that is not.
#pragma once

#include <span>
#include <string>

#include "core/base/error.h"
#include "io/copy/lost_values.h"
#include "runtime/comm/comm.h"

namespace mckpt {

// Every rank has what all have lost. A collective.
void gather_losses(LostValues& lost, Comm& comm);

// "3 finite values became infinite in 2 tensors: a (2), b (1)"
std::string overflow_text(i64 infinite, std::span<const LostValues::Tensor> tensors);

Error overflow_error(const LostValues& lost, const std::string& output);

}  // namespace mckpt
