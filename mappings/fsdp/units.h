// The FSDP units of a model: which module owns a parameter. The engines differ where a unit is inside another
// one.
//
//   [ME]*   with the unit classes HybridStack and MambaLayer
//
//                              v1, the outermost owns    v2, the innermost owns
//   decoder.layers.0.layers.0  decoder.layers.0          decoder.layers.0.layers.0
//   ... its dense E            decoder.layers.0          decoder.layers.0
//   ... its experts            decoder.layers.0          decoder.layers.0.layers.1.mlp.experts
//   * and the final norm       -                         decoder
//
// v1 takes the stacks that are groups, and the stack around them only where there are no groups. v2 takes
// every stack, and shards the experts of each layer by themselves, whatever the unit classes are.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "core/base/name_hash.h"

namespace mckpt::impl {

struct FsdpSetup;
struct ModelParameter;
enum class UnitClass : u8;

// The module of a unit.
struct UnitModule {
  std::string name{};    // at run time: "decoder.layers.0"
  bool stack = false;    // a HybridStack
  bool experts = false;  // experts whose layer is none
  UnitClass layer{};     // of the unit, or of the first layer in its stack
};

// Gives units their numbers. One object for one list of parameters.
class UnitOwners {
 public:
  explicit UnitOwners(const FsdpSetup& setup) : setup_(setup) {}

  // The number of the unit that owns the parameter, or kNoUnit. Whether the strategy has units is not asked.
  i64 of(const ModelParameter& p) { return owner(p).number; }
  // All units that own one of the parameters, by number.
  std::map<i64, UnitModule> modules(const std::vector<ModelParameter>& parameters);

 private:
  enum class Kind : u8 { kNone, kLayer, kExperts, kStack };
  struct Owner {
    i64 number;
    Kind kind;
  };
  Owner owner(const ModelParameter& p);
  Owner owner_under_v2(const ModelParameter& p);

  const FsdpSetup& setup_;
  NameMap<std::string, i64> stacks_;  // of v2
};

}  // namespace mckpt::impl
