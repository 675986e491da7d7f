// The dialects of DCP folders (io/dcp/keys/dialect.h says what they are), which the table of formats names
// too.
#pragma once

#include "core/base/int.h"

namespace mckpt::impl {

enum class DcpDialect : u8 { kPlain, kFsdpDtensor, kMegatronFsdp, kStateDict, kTorchDist };

}  // namespace mckpt::impl
