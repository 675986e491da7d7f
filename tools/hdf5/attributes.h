// The attributes of a group or dataset, as text: settings of a model that are stored beside the tensors.
#pragma once

#include <string>

#include "hdf5/answer.h"
#include "hdf5/effort.h"
#include "hdf5/handle.h"

namespace mckpt::impl {

// Adds a kAttribute record for each attribute of the object, and a fault for each one that cannot be read. An
// attribute for which the effort does not suffice is not whole.
void answer_attributes(Answer& out, Effort& effort, const std::string& name, hid_t object);

}  // namespace mckpt::impl
