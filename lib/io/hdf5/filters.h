// The filters that HDF5 itself has and h5py uses: shuffle, deflate and fletcher32. They are undone here, on
// bytes that mckpt has read, so that no data pass through the HDF5 library.
#pragma once

#include <span>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

struct Hdf5Filter;

// Throws kUnsupportedHdf5 that names a filter that is none of these, or occurs twice.
void check_filters(std::span<const Hdf5Filter> filters);

// How long a chunk of `bytes` is in the file, or -1 where that is up to its values. `skipped`: as in
// Hdf5Chunk.
i64 exact_stored_bytes(std::span<const Hdf5Filter> filters, i64 skipped, i64 bytes);

// The chunk that was stored as these bytes. Throws kBadHdf5. pre: the filters were checked.
std::vector<u8> unfiltered(std::vector<u8> stored, std::span<const Hdf5Filter> filters, i64 skipped,
                           i64 bytes);

// The sum that HDF5 keeps, of big-endian pairs of bytes.
u32 fletcher32(std::span<const u8> bytes);

}  // namespace mckpt::impl
