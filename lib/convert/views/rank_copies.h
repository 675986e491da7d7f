// Whether tensors that several ranks hold alike, each in its own file, are the same in all of them.
#pragma once

#include <span>
#include <utility>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;

// `copies`: pairs of tensors of the store. Checksums decide where the files have them, and the bytes elsewhere, or with
// `read_all` everywhere. Throws kBadShards with the files and tensors that differ.
void refuse_unlike_copies(const Store& store, std::span<const std::pair<i64, i64>> copies, bool read_all);

}  // namespace mckpt::impl
