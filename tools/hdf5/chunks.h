// The places of the chunks of a dataset.
#pragma once

#include <vector>

#include "hdf5/answer.h"
#include "hdf5/effort.h"
#include "hdf5/handle.h"

namespace mckpt::impl {

// How it went: all chunks were found; the index lists others than are there; the grid is larger than the
// effort that is left.
enum class ChunkAnswer { kWhole, kDamaged, kTooMany };

// Adds the number of chunks and the chunks to the record that is open. With another answer than kWhole the
// record must be dropped. pre: no size in `chunk` is 0.
ChunkAnswer add_chunks(Answer& out, Effort& effort, hid_t dataset, const std::vector<hsize_t>& dims,
                       const std::vector<hsize_t>& chunk);

}  // namespace mckpt::impl
