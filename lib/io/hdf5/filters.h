// The filters that HDF5 itself has and h5py uses, undone here, on bytes that mckpt has read, so that no
// data pass through the HDF5 library. Filters are applied one after the other when a chunk is written:
//
//   values --shuffle--> bytes by significance --deflate--> compressed --fletcher32--> and a checksum --> file
#pragma once

#include <span>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

struct Hdf5Filter;

// Throws kUnsupportedHdf5, naming a filter that is none of these or is used twice.
void check_filters(std::span<const Hdf5Filter> filters);

// Bytes of a chunk of `bytes` in the file; -1 if they depend on its values (deflate). `skipped`: as in
// Hdf5Chunk.
i64 exact_stored_bytes(std::span<const Hdf5Filter> filters, i64 skipped, i64 bytes);

// The `bytes` of the chunk that was stored so. Throws kBadHdf5. pre: the filters were checked.
std::vector<u8> unfiltered(std::vector<u8> stored, std::span<const Hdf5Filter> filters, i64 skipped,
                           i64 bytes);

// HDF5's checksum, over big-endian pairs of bytes.
u32 fletcher32(std::span<const u8> bytes);

}  // namespace mckpt::impl
