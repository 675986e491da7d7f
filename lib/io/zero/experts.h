// Experts of DeepSpeed-MoE: their names, and which ranks have them. Experts are divided among the ranks of an
// expert-parallel group, and each part is cut over the ranks that have the same experts:
//
//   4 ranks, 2 of them for the experts, 4 experts of a layer
//     rank 0, 2   experts 0 and 1, half of the vector each       sets 2, ranks 2
//     rank 1, 3   experts 2 and 3, which the ranks call 0 and 1
//
//   in param_shapes, the same on each rank                         in the file of the expert, and in the store
//   layers.1.moe.deepspeed_moe.experts.deepspeed_experts.0.up.weight     ... deepspeed_experts.2.up.weight
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/int.h"
#include "core/base/name_hash.h"
#include "io/zero/states.h"

namespace mckpt::impl {

// The name of an expert's parameter, taken apart.
struct ZeroExpertName {
  std::string_view front;  // to the last dot before the number
  i64 expert = 0;
  std::string_view rest;  // from the dot behind it
};
// Nothing for another name.
std::optional<ZeroExpertName> zero_expert_name(std::string_view name);

// The experts of a group of parameters, as one rank counts them.
class ZeroLocalExperts {
 public:
  explicit ZeroLocalExperts(const ZeroGroup& group);
  // The name of a parameter of the set of ranks `set` in the whole model.
  std::string global_name(std::string_view local, i64 set) const;
  // The number of experts that a rank has of a layer, by the front of their names.
  const NameMap<std::string_view, i64>& counts() const { return counts_; }

 private:
  NameMap<std::string_view, i64> counts_;
};

}  // namespace mckpt::impl
