// Judges the helper's facts about a dataset: whether type, size and place fit each other and the file. Only
// datasets that pass are read.
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

// The data type that HDF5 describes. It describes a float by its fields (sign, exponent, mantissa), so
// bfloat16 and the 8-bit floats are recognised like any other. The order of bytes is not looked at. Throws
// kUnsupportedHdf5.
DType hdf5_dtype(const Hdf5Type& type);
// The type in which HDF5 stores items of a data type, little-endian. Types that HDF5 has no numbers for
// become the types of their codes, unsigned integers; elements smaller than a byte are bytes.
Hdf5Type hdf5_type(DType dtype);

// Bytes of one chunk, unpacked. pre: the dataset has chunks and was checked.
i64 chunk_bytes(const Hdf5Dataset& d);
// Chunks that it would have if all were written. Throws kSizeOverflow.
i64 chunk_places(const Hdf5Dataset& d);
// Bytes that it takes up in the file.
i64 stored_bytes(const Hdf5Dataset& d);
// Whether some of it was never written, and reads as the fill value.
bool partly_unwritten(const Hdf5Dataset& d);

// Throws kBadHdf5, kUnsupportedHdf5, kBadShape, kSizeOverflow. `file_bytes`: those from the superblock on.
void check_dataset(const Hdf5Dataset& d, i64 file_bytes);

// Pairs of datasets that share bytes in the file: (the later one, the other), at most one pair for each
// dataset. Two names of one dataset are not such a pair. pre: all were checked.
std::vector<std::pair<std::size_t, std::size_t>> overlapping(std::span<const Hdf5Dataset> datasets);

}  // namespace mckpt::impl
