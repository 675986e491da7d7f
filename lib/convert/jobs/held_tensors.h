// HeldTensor: what one rank of a Megatron run holds of a model, found by arithmetic. At run time the rank
// holds the whole of each of its parameters; what Megatron-FSDP saves are boxes of global tensors, under the
// keys on disk:
//
//   at run time   decoder.layers.0.mlp.linear_fc1.weight                  [128, 32]  all
//   saved         model.module.decoder.layers.0.mlp.linear_fc1.weight_w   [64, 32]   [16, 32] at [16, 0]
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"
#include "core/items/dtype.h"
#include "core/items/item_run.h"
#include "core/items/shape.h"

namespace mckpt::impl {

class FsdpLayout;
class Store;
struct Cell;
struct ModelParameter;
struct StoredTypes;

struct HeldTensor {
  std::string name;
  const ModelParameter* parameter;
  Shape shape;                      // of the whole tensor of that name
  std::vector<i64> offsets, sizes;  // the rank's box in it
  ItemRange items;                  // of the parameter's local order
  DType dtype = DType::kBF16;

  i64 local_bytes() const { return dtype_bytes(dtype, items.items()); }
};

// The parameters outlive the result.
std::vector<HeldTensor> held_at_run_time(const std::vector<ModelParameter>& parameters,
                                         const StoredTypes& types);
// A parameter of which the rank holds nothing has an empty range.
std::vector<HeldTensor> held_as_saved(const std::vector<ModelParameter>& parameters, const FsdpLayout& layout,
                                      const Cell& cell, const StoredTypes& types);

// The SHA-256 of the bytes of each. The store has the tensors of the model's source table, in that order.
std::vector<std::string> held_digests(const Store& store, std::span<const HeldTensor> held, int threads);

}  // namespace mckpt::impl
