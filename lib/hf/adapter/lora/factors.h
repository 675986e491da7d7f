// Rules for the tensors of an adapter among themselves and by its config: no base is needed to check them.
//
//   X.lora_A.weight [r, in], X.lora_B.weight [out, r]     both are there, with the r of the config for X
#pragma once

#include <map>
#include <string>

#include "core/base/error.h"
#include "core/base/int.h"
#include "hf/adapter/lora/modules.h"

namespace mckpt::impl {

class Store;
struct FactorPair;
struct LoraConfig;

// The checks of one adapter. The arguments outlive it. Names are names of modules in the model.
class Factors {
 public:
  Factors(const Store& adapter, const LoraConfig& config, const AdapterNames& names)
      : adapter_(adapter), config_(config), names_(names) {}

  // Throws kUnaccounted for a module without factors, with one of the two, or with factors of two kinds of
  // layers.
  void check_parts(const AdapterModule& m) const;
  // The pair with its sizes. Throws kUnsupportedTensor for factors that are not matrices, kSourceShape for
  // two that do not have one rank.
  FactorPair sized(const AdapterModule::Pair& pair) const;
  // Throws kSourceShape for another rank than the config gives.
  void check_rank(const std::string& module, const FactorPair& f) const;
  // Throws kUnaccounted for a module that the config gives no factors. `tied`: its weight is another one's,
  // too.
  void check_chosen(const std::string& module, i64 factor, bool tied) const;
  // Throw kUnaccounted where config and tensors disagree; kSourceShape for magnitudes of another number.
  void check_magnitude(const AdapterModule& m, const FactorPair& f) const;
  void check_bias(const AdapterModule& m) const;
  // Throws kUnaccounted for tokens of the config of which the adapter has no rows.
  void require_tokens(bool may_be_tied) const;

  // All of it for one module. Throws the same.
  void check(const std::string& module, const AdapterModule& m) const;

 private:
  void check_whole(const AdapterModule::Pair& pair) const;
  bool may_have_parameters(const std::string& module) const;
  void check_parameters(const std::string& module, const AdapterModule& m) const;

  const Store& adapter_;
  const LoraConfig& config_;
  const AdapterNames& names_;
};

}  // namespace mckpt::impl
