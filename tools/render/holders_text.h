// Who holds what, as text: for every tensor, which ranks (or files) hold how much of it, and whether all of
// it is there.
#pragma once

#include <span>

#include "core/base/int.h"

namespace mckpt::impl {

class Output;
class Store;

// The map of these tensors as text, with its legend.
void write_holders(Output& out, const Store& store, std::span<const i64> tensors);

}  // namespace mckpt::impl
