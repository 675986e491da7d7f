// How a parameter lies over the tensor-parallel ranks where the row that adds it names no rule, and what says
// so.
//
//   partition_dim in the row   >   a plain parameter that Megatron is known to split   >   a norm by its name
//
// Explicit beats inferred. A Mamba mixer's gated norm is a norm by name and by class, yet it is split: a
// classifier that asks for the name first gets exactly this one wrong.
#pragma once

#include <optional>
#include <string_view>

#include "core/base/int.h"

namespace mckpt {

// In the order in which it is believed.
enum class PartitionEvidence : u8 { kAnnotation, kName, kNormName };

struct PartitionClues {
  std::string_view name;               // Megatron's, with whatever prefix
  int rank = 0;                        // how many dimensions the tensor has
  std::optional<int> annotation = {};  // its partition_dim, as Megatron writes it: -1 is not split
};

struct Partition {
  int dim = -1;  // -1: every rank has all of it
  PartitionEvidence evidence = PartitionEvidence::kAnnotation;

  friend bool operator==(const Partition&, const Partition&) = default;
};

// Throws kUnknownPartition when nothing says it, when the name is that of a fused parameter, or when what is
// said does not fit the tensor.
Partition partition_of(const PartitionClues& clues);

std::string_view rule_of(const Partition& partition);        // "column", "row", "replicate"
std::string_view evidence_text(PartitionEvidence evidence);  // "its partition_dim"

}  // namespace mckpt
