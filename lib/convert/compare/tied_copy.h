// A model whose output layer is the embedding may be stored with both tensors: Megatron-FSDP v2 and torch's
// FSDP2 write the weights under either name.
#pragma once

#include <span>

#include "io/store/store.h"

namespace mckpt {

// Compares each output layer with the embedding beside it. `copies`: what StoredChunks::copies() lists. Throws
// kUnaccounted where they differ.
void check_tied_copies(const Store& store, std::span<const i32> copies);

}  // namespace mckpt
