// How a parameter is split over the tensor-parallel ranks if the row that adds it names no rule, and the
// evidence for it.
//
//   partition_dim in the row   >   a plain parameter that Megatron is known to split   >   a norm by its name
//
// Explicit evidence comes before inferred evidence. A Mamba mixer's gated norm is a norm by name and by
// class, yet it is split: a classifier that checks the name first gets it wrong.
#pragma once

#include <optional>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

// Strongest evidence first.
enum class PartitionEvidence : u8 { kAnnotation, kName, kNormName };

struct PartitionClues {
  std::string_view name;               // Megatron's name, with any prefix
  int rank = 0;                        // number of dimensions of the tensor
  std::optional<int> annotation = {};  // its partition_dim, as Megatron writes it: -1 is not split
};

struct Partition {
  int dim = -1;  // -1: every rank has all of it
  PartitionEvidence evidence = PartitionEvidence::kAnnotation;

  friend bool operator==(const Partition&, const Partition&) = default;
};

// Throws kUnknownPartition if there is no evidence, if the name belongs to a fused parameter, or if the
// evidence does not fit the tensor.
Partition partition_of(const PartitionClues& clues);

std::string_view rule_of(const Partition& partition);        // "column", "row", "replicate"
std::string_view evidence_text(PartitionEvidence evidence);  // "its partition_dim"

}  // namespace mckpt::impl
