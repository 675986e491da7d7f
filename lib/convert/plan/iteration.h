// A result that is an iteration of a training run: DST/release or DST/iter_0000010, with the tracker beside it.
#pragma once

#include "convert/output/fsdp_folder.h"
#include "core/base/int.h"

namespace mckpt::impl {

class DcpLayout;
struct Conversion;

// Puts the place of the iteration, the layout's files with their final sizes, the files beside them and the
// tracker into the conversion; `iteration`: nothing is "release". Returns the digest of the .metadata file,
// which depends on every key, type, chunk and place.
std::string plan_iteration(Conversion& conversion, const DcpLayout& layout, const std::string& target,
                           std::optional<i64> iteration, FsdpFolder::Beside beside);

}  // namespace mckpt::impl
