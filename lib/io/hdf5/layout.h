// Whether what mckpt-hdf5 says of a dataset fits itself and the file: its data type, its size, and where its
// bytes lie.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

enum class DType : u8;
struct Hdf5Dataset;
struct Hdf5Type;

// The data type whose bits these are. HDF5 describes floats by their fields, so that bfloat16 and the 8-bit
// floats are known like any other; torch's own order of bytes is little-endian. Throws kUnsupportedHdf5.
DType hdf5_dtype(const Hdf5Type& type);

// Bytes of one chunk, not compressed. pre: the dataset has chunks and was checked.
i64 chunk_bytes(const Hdf5Dataset& d);
// Chunks that it would have, were all of them written. Throws kSizeOverflow.
i64 chunk_places(const Hdf5Dataset& d);
// Bytes that the file holds of it.
i64 stored_bytes(const Hdf5Dataset& d);
// Whether some of it was never written, and reads as the fill value.
bool partly_unwritten(const Hdf5Dataset& d);

// Throws kBadHdf5, kUnsupportedHdf5, kBadShape, kSizeOverflow. `file_bytes`: behind the superblock.
void check_dataset(const Hdf5Dataset& d, i64 file_bytes);

// The datasets whose bytes are also those of another one, and of which: (the later one, the other). Two names
// of one dataset are none. At most one pair a dataset. pre: all were checked.
std::vector<std::pair<std::size_t, std::size_t>> overlapping(std::span<const Hdf5Dataset> datasets);

}  // namespace mckpt::impl
