// The parameters of numbered states. The hooks of Megatron-FSDP alone save an optimizer as torch.optim keeps it:
// states under numbers, and groups that list numbers. Which parameter has which number is up to the program that
// made the optimizer; it is known if every group lists its parameters in the order of the model:
//
//   model order      groups                     states           by number
//   w1 [4, 4]        0: params 0, 1             0 [4, 4]         0 w1
//   b1 [4]           1: params 2                1 [2, 4]         1 w2
//   w2 [2, 4]                                   2 [4]            2 b1
//
// The parameters are taken one by one; each must have the shape of the next number of exactly one group.
// Anything else is refused: no number is guessed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/int.h"
#include "core/base/name_hash.h"

namespace mckpt::impl {

class Store;
struct ModelParameter;

// Whether the store has states under numbers: "optimizer.state.0.exp_avg".
bool has_numbered_states(const Store& store);

// By number, as a text: the parameter's key, without the prefixes of wrappers.
struct NumberedStates {
  NameMap<std::string, std::string> key_of;
  std::vector<std::pair<std::string, std::string>>
      group_of;  // by trained parameter: key, number of the group
};

// pre: has_numbered_states(). `known`: the parameters of the model in its order, as one rank has them; empty for a
// model that is not known, whose order is that of .metadata. Throws kNotHeld with the reason if the numbers
// cannot be given to parameters without doubt.
NumberedStates numbered_states(const Store& store, const std::vector<ModelParameter>& known);

}  // namespace mckpt::impl
