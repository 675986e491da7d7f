// Along which dimension a stored tensor is split over the tensor-parallel ranks, and what says so. Needed
// where no model family does: for tensors of files that are looked at one by one.
//
// Explicit beats inferred. A Mamba mixer's gated norm is a norm by name and by class, yet it is split: a
// classifier that asks for the name first gets exactly this tensor wrong.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/int.h"

namespace mckpt {

// In the order in which it is believed.
enum class PartitionEvidence : u8 {
  kFile,      // the sharding that the file states
  kMark,      // tensor_model_parallel and partition_dim of the parameter
  kName,      // the known names of Megatron's parameters
  kNormName,  // a norm by its name: not split
};

struct ParameterMark {
  bool tensor_parallel = false;
  int dim = -1;
};

struct PartitionClues {
  std::string_view name;         // Megatron's, with whatever prefix
  int rank = 0;                  // how many dimensions the tensor has
  std::optional<int> file = {};  // the dimension; -1: the file says that every rank has all of it
  std::optional<ParameterMark> mark = {};
};

struct Partition {
  int dim = -1;  // -1: every rank has all of it
  PartitionEvidence evidence = PartitionEvidence::kFile;

  friend bool operator==(const Partition&, const Partition&) = default;
};

// Throws kUnknownPartition when nothing says it, or when what is said does not fit the tensor.
Partition partition_of(const PartitionClues& clues);

// The dimension along which boxes cut a tensor of size `global`, where there is exactly one. Nothing follows
// from a tensor in one piece: it may have been written by a single rank. `rows_are_cut`: FSDP cuts dimension
// 0 in any case, so that cut says nothing about tensor parallelism. Box i has sizes [i*rank, (i+1)*rank).
std::optional<int> partition_in_file(std::span<const i64> global, std::span<const i64> sizes,
                                     bool rows_are_cut);

}  // namespace mckpt
