// The types that a conversion was asked for, by key of a checkpoint.
#pragma once

namespace mckpt::impl {

class CheckpointModel;
class TypeCheck;

// Asks each key of the tested checkpoint. `source`: the checkpoint that it was made of; null: a model, whose
// parameters have the types before the conversion.
void ask_keys(const CheckpointModel& tested, const CheckpointModel* source, TypeCheck& check);

}  // namespace mckpt::impl
