// The check "groups" of `verify`: the options and states of an optimizer, as a person who knows the run would
// read them.
//
//   pass  groups   56 parameters   groups, options and states fit
//   pass  groups   2 groups        groups and options fit; states were not read
//   warn  groups   56 parameters   groups, options, states
//         warning[MC1013]: tensor 'decoder.layers.0.input_layernorm.weight': 1 of 21 norms and biases decays (group 0,
//         weight_decay 0.1), unlike the others
//
// All its findings are warnings: a run may have been meant so.
#pragma once

namespace mckpt::impl {

class CheckpointModel;
class Store;
struct VerifyReport;

// Adds the check if the store has an optimizer that is known (convert/optimizer/read_content.h). States that
// an earlier check of the report has told are not told again. The note of the check names the ranks that hold
// nothing of a group.
void check_optimizer(const Store& store, VerifyReport& report);
// The same by the names of the model. False if the checkpoint has no options of parameters, and nothing was
// added.
bool check_optimizer(const CheckpointModel& checkpoint, VerifyReport& report);

}  // namespace mckpt::impl
