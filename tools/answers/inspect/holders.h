// Who holds what, as text: for every tensor, which ranks (or files) hold how much of it, and whether all of
// it is there. The answer of `mckpt inspect --map`. A checkpoint that lacks the file of a rank shows at a
// glance which tensors lost something:
//
//   layers.0.mlp.linear_fc2.weight   [12, 14]  ## .. ..       full, in one piece
//   layers.0.mlp.linear_fc1.weight   [14, 12]  .. .. ## !!    a missing file
#pragma once

#include <span>
#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

class Output;
class Store;
struct ShardFacts;

// The map of these tensors as text, with its legend. `facts`: of one rank's file; null for any other store.
void write_holders(Output& out, const Store& store, std::span<const i64> tensors, const ShardFacts* facts);

}  // namespace mckpt::impl
