// The numbers of the formats, for those who make stores of them.
#pragma once

#include "io/store/format.h"

namespace mckpt::impl {

enum class Format : u8 {
#define DRIVER(id, ...) id,
#include "io/store/open/drivers.inc"
};

}  // namespace mckpt::impl
