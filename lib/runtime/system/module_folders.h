// The folders with files that are loaded or started on demand: modules (libmckpt_mpi.so) and helper programs
// (mckpt-hdf5).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mckpt::impl {

// The folders in the order in which they are searched, each with a slash at its end: those of
// $MCKPT_MODULE_PATH (separated by ':'), that of the program, and ../lib/mckpt from there. They may not
// exist.
std::vector<std::string> module_folders();

}  // namespace mckpt::impl
