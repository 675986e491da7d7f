// The memory that Megatron-FSDP takes on one rank, from the buffers as they are packed. A strategy decides
// which buffers a rank has whole, and which only its shard of:
//
//   strategy             weights   main weights   gradients   moments          gathered
//   no_shard             whole     whole          whole       whole            -
//   optim                whole     shard          whole       items of shard   -
//   optim_grads          whole     shard          shard       items of shard   -
//   optim_grads_params   shard     shard          shard       items of shard   a unit at a time
//
// Buffers have holes and padding; moments are tensors of an optimizer, one for each parameter, and have none.
// Activations, and what a library keeps for itself, are not in it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "core/items/dtype.h"

namespace mckpt::impl {

struct FsdpSetup;
struct Grid;
struct ModelPacking;
struct ModelParameter;

// The types of what a run has beside its weights.
struct MemoryTypes {
  std::optional<DType> main = DType::kF32;       // nothing: the weights are the main weights
  std::optional<DType> gradients = DType::kF32;  // nothing: each parameter's type at run time
  DType moments = DType::kF32;                   // of both moments of Adam
};

// Bytes of the rank that takes most.
struct RankMemory {
  i64 rank = 0;
  i64 weights = 0, main_weights = 0, gradients = 0, moments = 0;
  i64 buffers = 0;              // persistent ones, which every rank has whole
  i64 holes = 0, padding = 0;   // of weights, main weights and gradients, which no parameter uses
  i64 gathered = 0;             // the weights of the largest unit, whole: beside the rest while it computes
  i64 unreduced = 0;            // its gradients, whole, before they are reduced to shards
  std::string gathered_unit{};  // "decoder.layers.0"; "" where nothing is gathered, or outside units

  i64 total() const { return weights + main_weights + gradients + moments + buffers; }
};

// pre: `packing` is packing_of() the same parameters, grid and set-up. Under v1, HSDP whose instances have
// parts of a buffer has helper buffers that are not counted: throws kBadLayout.
RankMemory memory_of(const std::vector<ModelParameter>& parameters, const ModelPacking& packing,
                     const Grid& grid, const FsdpSetup& setup, const MemoryTypes& types);

// How many parameters of layers, and items of them, no FSDP unit has: the weights of all of these are
// gathered at once.
struct OutsideUnits {
  i64 parameters = 0, of_parameters = 0;
  i64 items = 0, of_items = 0;
  std::string first{};  // a parameter outside units

  // More than a tenth of the layers.
  bool much() const { return items * 10 > of_items; }
};
OutsideUnits outside_units(const std::vector<ModelParameter>& parameters, const ModelPacking& packing);

}  // namespace mckpt::impl
