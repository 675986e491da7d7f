// HeldTensor: what one rank of a Megatron training run holds of a model, found by arithmetic, without a
// training run. At run time the rank holds the whole of each of its parameters; Megatron-FSDP saves boxes of
// global tensors, under the keys on disk:
//
//   at run time   decoder.layers.0.mlp.linear_fc1.weight                  [128, 32]  all
//   saved         model.module.decoder.layers.0.mlp.linear_fc1.weight_w   [64, 32]   [16, 32] at [16, 0]
//
// A list of such tensors, with digests of their values, can be compared with a real rank without writing a
// checkpoint.
#pragma once

#include <string>
#include <vector>

#include "convert/keys/fsdp_plan.h"
#include "io/store/store.h"

namespace mckpt::impl {

// One tensor of the rank: its name, its box in the whole tensor of that name, and the range of the
// parameter's local order that the box is. `parameter` belongs to the caller.
struct HeldTensor {
  std::string name;
  const ModelParameter* parameter;
  Shape shape;                      // of the whole tensor of that name
  std::vector<i64> offsets, sizes;  // the rank's box in it
  ItemRange items;                  // in the parameter's local order
  DType dtype = DType::kBF16;

  i64 local_bytes() const { return dtype_bytes(dtype, items.items()); }
};

// One tensor for each parameter, whole, under the name at run time. pre, for both functions: the parameters
// outlive the result.
std::vector<HeldTensor> held_at_run_time(const std::vector<ModelParameter>& parameters,
                                         const StoredTypes& types);
// The tensors that Megatron-FSDP saves on the rank of `cell`, under their keys on disk. A parameter of which
// the rank holds nothing is listed with an empty range.
std::vector<HeldTensor> held_as_saved(const std::vector<ModelParameter>& parameters, const FsdpLayout& layout,
                                      const Cell& cell, const StoredTypes& types);

// The SHA-256 of the bytes of each tensor, in the type in which it is held. pre: the tensors of the store are
// those of the model's source table, in that order. Reads the store's files with `threads` threads.
std::vector<std::string> held_digests(const Store& store, std::span<const HeldTensor> held, int threads);

}  // namespace mckpt::impl
