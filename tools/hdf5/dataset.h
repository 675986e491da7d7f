// One dataset: its type, its shape and the place of its bytes. Only its header is read.
#pragma once

#include <string>

#include "hdf5/answer.h"
#include "hdf5/effort.h"
#include "hdf5/handle.h"

namespace mckpt::impl {

// Adds a kDataset record, kOther for a dataset that is not a tensor, or a fault. `address` is the address of
// its header in the file: two names of one dataset have the same.
void answer_dataset(Answer& out, Effort& effort, const std::string& name, haddr_t address, hid_t dataset);

}  // namespace mckpt::impl
