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

#include <functional>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "core/hybrid/cp_slice.h"
#include "core/items/dtype.h"
#include "core/items/item_run.h"
#include "core/items/shape.h"
#include "mappings/rule.h"

namespace mckpt::impl {

class FsdpLayout;
class Store;
struct Cell;
struct Grid;
struct ModelConfig;
struct ModelParameter;
struct StoredTypes;

// One tensor of the rank: its name, its box in the whole tensor of that name, and the range of the
// parameter's local order that the box is. `parameter` belongs to the caller.
struct HeldTensor {
  std::string name;
  const ModelParameter* parameter;
  Shape shape;                      // of the whole tensor of that name
  std::vector<i64> offsets, sizes;  // the rank's box in it
  ItemRange items;                  // in the parameter's local order
  DType dtype = DType::kBF16;
  // The rows of the tensor with which the rank computes, if context parallelism gives it a part of those that
  // its tensor-parallel rank has; else nothing.
  std::vector<RowRange> cp_rows = {};
  Piece piece = {};  // the rows of the parameter that the tensor of that name has on this cell

  i64 local_bytes() const { return dtype_bytes(dtype, items.items()); }
};

// The rank that is asked about: a rank of a training run of the model.
struct HolderRank {
  const ModelConfig& model;
  const Grid& grid;
  const Cell& cell;
};

// One tensor for each parameter, whole, under the name at run time. pre, for both functions: the parameters
// outlive the result. Both throw kBadSlice.
std::vector<HeldTensor> held_at_run_time(const std::vector<ModelParameter>& parameters,
                                         const HolderRank& rank, const StoredTypes& types);
// The tensors that Megatron-FSDP saves on the rank, under their keys on disk. A parameter of which
// the rank holds nothing is listed with an empty range.
std::vector<HeldTensor> held_as_saved(const std::vector<ModelParameter>& parameters, const FsdpLayout& layout,
                                      const HolderRank& rank, const StoredTypes& types);

// The tensors of a rank under Megatron-FSDP at run time: whole parameters under their names there, with the
// boxes that the flat buffers give.
std::vector<HeldTensor> held_wrapped(const std::vector<ModelParameter>& parameters, const FsdpLayout& layout,
                                     const HolderRank& rank, const StoredTypes& types);

// Items of a parameter as a rank may hold them: ranges of its local order, one after the other.
struct HeldItems {
  const ModelParameter* parameter;
  std::vector<ItemRange> ranges;
  DType dtype;

  i64 bytes() const;
};

// The SHA-256 of the bytes of each, in its type. pre: as for held_digests(). Throws kBadCast.
std::vector<std::string> item_digests(
    const Store& store, std::span<const HeldItems> wanted, int threads,
    const std::function<void(i64 bytes)>& progress = [](i64) {});
// The SHA-256 of the bytes of each tensor, in the type in which it is held. pre: the store has the tensors of
// the model's source table, in that order. Reads the store's files with `threads` threads.
std::vector<std::string> held_digests(
    const Store& store, std::span<const HeldTensor> held, int threads,
    const std::function<void(i64 bytes)>& progress = [](i64) {});

}  // namespace mckpt::impl
