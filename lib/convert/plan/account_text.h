// The account of a conversion in words, for people and for cards.
//
//   45 in -> 41 out: 39 copied, 2 fused; dropped 0, invented 0
//   5 files in -> 5 out: 5 copied; dropped 0, invented 0           of a conversion of whole files
#pragma once

#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

struct Conversion;

// The format of the result and its ranks: "fsdp_dtensor: 4 ranks (tp=2 ...), 53 chunks, 72.5 KiB".
std::string result_text(const Conversion& conversion);
// pre: prove() was called.
std::string account_text(const Conversion& conversion);
// Tensors that repeat another one, on either side.
i64 tied_tensors(const Conversion& conversion);

}  // namespace mckpt::impl
