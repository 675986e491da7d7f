// All groups, datasets and links of a file, in the order of their names.
#pragma once

#include "hdf5/answer.h"
#include "hdf5/handle.h"

namespace mckpt::impl {

// Adds a record or a fault for everything in the file. Never throws; the caller finishes the answer.
void answer_file(Answer& out, hid_t file);

}  // namespace mckpt::impl
