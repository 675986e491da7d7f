// Who holds what: for every tensor, which ranks (or files) hold how much of it, and whether all of it is
// there.
#pragma once

#include <span>

#include "io/store/store.h"
#include "tools/render/output.h"

namespace mckpt {

// The map of these tensors as text, with its legend.
void write_shard_map(Output& out, const Store& store, std::span<const i64> tensors);

}  // namespace mckpt
