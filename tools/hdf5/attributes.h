// The attributes of a group or dataset, as text.
#pragma once

#include <string>

#include "hdf5/answer.h"
#include "hdf5/handle.h"

namespace mckpt::impl {

void answer_attributes(Answer& out, const std::string& name, hid_t object);

}  // namespace mckpt::impl
