// All groups, datasets and links of a file.
#pragma once

#include "hdf5/answer.h"
#include "hdf5/handle.h"

namespace mckpt::impl {

void answer_file(Answer& out, hid_t file);

}  // namespace mckpt::impl
