// The formats of checkpoints, by number: the rows of io/store/open/drivers.inc in their order. Here is what
// is asked of any format; what one does differently is a property of its row (io/store/driver.h). Only those
// who make stores name a format (io/store/open/format_ids.h).
#pragma once

#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

enum class Format : u8;

// Formats with one reader and one kind of files.
enum class FormatFamily : u8 { kSafetensors, kTorch, kMegatron, kDcp, kHdf5, kOther };

FormatFamily format_family(Format format);

// The name that people and JSON are shown: a literal, which ends with a NUL.
std::string_view format_text(Format format);

}  // namespace mckpt::impl
