// A model whose output layer is the embedding may have been saved with both: Megatron-FSDP v2 and torch's
// FSDP2 write the tensor under either name.
#pragma once

#include "io/store/store.h"
#include "mappings/config.h"

namespace mckpt {

// Whether the tensor is the output layer of a tied model; then it holds what the embedding of the same store
// holds. Reads both. Throws kUnaccounted where they differ.
bool is_tied_copy(const Store& store, i32 tensor, const ModelConfig& model);

}  // namespace mckpt
