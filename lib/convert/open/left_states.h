// The states of the optimizer that a conversion cannot take along: refused, or counted in a note.
#pragma once

#include "core/base/int.h"

namespace mckpt::impl {

class CheckpointModel;
class Notes;

// Throws kNotHeld for files of ranks with the states of a distributed optimizer. pre: opened with its states.
void refuse_left_states(const CheckpointModel& model);

// Says how many states a result of weights lacks; says nothing of none.
void note_left_states(i64 states, Notes& notes);

}  // namespace mckpt::impl
