// Pairs for parameters that are not the weight of a module (target_parameters): stacks of experts. PEFT wraps
// a module once for each of its parameters, and names a pair by how deep it is in these wrappers, not by the
// parameter:
//
//   experts.base_layer.lora_A [r * E, in]    the parameter that was wrapped first     experts.gate_up_proj [E, 2 I, H]
//   experts.lora_A                           the last one                             experts.down_proj    [E, H, I]
//
// The shapes say which is which. On the disk a stack may be one tensor for each expert, gate and up apart.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "core/base/name_hash.h"
#include "hf/adapter/lora/base_facts.h"
#include "hf/adapter/lora/pairing.h"

namespace mckpt::impl {

// The tensors of the base by their names. The store outlives it.
class BaseTensors {
 public:
  BaseTensors(const Store& store, const BaseFacts& facts);
  const Store& store() const { return store_; }
  // By the name on disk, or else by that in memory. -1: there is none.
  i64 find(std::string_view name) const;
  // The name on disk of a tensor in memory.
  std::string on_disk(std::string_view name) const;
  // As MemoryNames has them, for a name in memory.
  std::vector<std::string> parts(std::string_view name) const;
  bool rearranged(std::string_view name) const;
  std::vector<std::string_view> names() const;

 private:
  const Store& store_;
  std::shared_ptr<const MemoryNames> memory_;
  NameMap<std::string_view, i64> numbers_;
};

// A pair of factors: `a` is [ranks, columns] and `b` [rows, ranks], where `ranks` counts the ranks of all
// experts together.
struct FactorPair {
  i64 a = -1, b = -1;  // tensors of the adapter
  i64 rows = 0, columns = 0, ranks = 0;
};

// The names, in the module, of its parameters that the config targets and the base has.
std::vector<std::string> targeted_parameters(const BaseTensors& base, const LoraConfig& config,
                                             std::string_view module);

// The tensors that the pairs change, in any order. Throws as pair_adapter().
std::vector<AdaptedTensor> pair_parameters(const BaseTensors& base, const LoraConfig& config,
                                           const std::string& module,
                                           const std::vector<std::string>& parameters,
                                           const std::vector<FactorPair>& pairs);

}  // namespace mckpt::impl
