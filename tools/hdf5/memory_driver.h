// A virtual file driver of the HDF5 library whose file is in memory, and only as far as something was
// written: what the library writes to lay a file out. Data of datasets are never written, so a file of
// terabytes takes megabytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "hdf5/handle.h"

namespace mckpt::impl {

// Properties for H5Fcreate of the file in memory, of which a process has one. Negative if the library
// refuses.
hid_t memory_access();

// To be called when the file is closed: its size, and every stretch that was written, ascending.
std::uint64_t composed_bytes();
void each_written(const std::function<void(std::uint64_t offset, std::string_view bytes)>& visit);

}  // namespace mckpt::impl
