// The parameters of numbered states. The hooks of Megatron-FSDP alone save an optimizer as torch.optim keeps
// it: states under numbers, and groups that list numbers. Which parameter has which number is up to the
// program that made the optimizer; it is known if every group lists its parameters in the order of the model
// (convert/own/number_matching.h).
#pragma once

#include <span>

#include "convert/own/number_matching.h"

namespace mckpt::impl {

class Store;
struct ModelParameter;

// Whether the store has states under numbers: "optimizer.state.0.exp_avg".
bool has_numbered_states(const Store& store);

// pre: has_numbered_states(). `known`: the parameters of the model in its order, as one rank has them; empty
// for a model that is not known, whose order is .metadata's. Throws kNotHeld with the reason if the
// numbers cannot be given to parameters without doubt.
NumberedStates numbered_states(const Store& store, std::span<const ModelParameter> known);

}  // namespace mckpt::impl
