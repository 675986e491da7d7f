// The folders with files that are loaded or started on demand: modules (libmckpt_mpi.so) and helper programs
// (mckpt-hdf5).
//
//   caller's folders       /opt/site/mckpt/                 those that the caller named
//   folder of the library  /usr/lib/                        of libmckpt.so; of the program that contains the library
//   lib/mckpt beside it    /usr/lib/mckpt/, /usr/bin/../lib/mckpt/
//   package of a wheel     venv/bin/../lib/python3.12/site-packages/mckpt/lib/, if it exists
#pragma once

#include <span>
#include <string>
#include <vector>

namespace mckpt::impl {

// The folders in the order in which they are searched, each with a slash at its end. `first` come first. They
// may not exist.
std::vector<std::string> module_folders(std::span<const std::string> first = {});

}  // namespace mckpt::impl
