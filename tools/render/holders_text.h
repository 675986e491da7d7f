// Who holds what, as text: for every tensor, which ranks (or files) hold how much of it, and whether all of
// it is there.
#pragma once

#include <span>

#include "io/store/store.h"
#include "tools/render/output.h"

namespace mckpt::impl {

// The map of these tensors as text, with its legend.
void write_holders(Output& out, const Store& store, std::span<const i64> tensors);

}  // namespace mckpt::impl
