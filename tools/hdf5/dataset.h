// One dataset: what it is and where its bytes lie. No byte of it is read, but those that stand in its header.
#pragma once

#include <string>

#include "hdf5/answer.h"
#include "hdf5/effort.h"
#include "hdf5/handle.h"

namespace mckpt {

// Adds a kDataset record, kOther for what is no tensor, or a fault.
void answer_dataset(Answer& out, Effort& effort, const std::string& name, haddr_t address, hid_t dataset);

}  // namespace mckpt
