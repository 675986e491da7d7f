// Starting mckpt-hdf5, the sandboxed program that opens HDF5 files, and reading its answer as bytes.
// Whatever happens in it, the caller continues in bounded time and memory: the program is ended when it
// takes too long, writes too much or dies.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class InputFile;

// For `mckpt env` and for errors.
inline constexpr std::string_view kHdf5HelperPurpose = "HDF5 files (a program of its own, in a sandbox)";
inline constexpr std::string_view kHdf5HelperHelp =
    "apt-get install libhdf5-dev, and build with MCKPT_HDF5=ON";

// The path of the program; "" if none of the module folders has it (runtime/system/module_folders.h).
// `folders` are searched first.
std::string find_hdf5_helper(std::span<const std::string> folders);

// The version of the HDF5 library in it. Throws kHelperFailed.
std::string hdf5_helper_version(const std::string& program);

// Its answer about the file whose superblock is at that offset. Throws kModuleMissing if it is in none of the
// folders that find_hdf5_helper() searches, and kHelperFailed.
std::vector<u8> ask_hdf5_helper(const InputFile& file, i64 superblock, std::span<const std::string> folders);

// Its answer to a request for a file with that many objects (io/hdf5/compose.h). Throws as the former.
std::vector<u8> ask_hdf5_composer(const std::string& request, i64 objects,
                                  std::span<const std::string> folders);

// Limits of one run of the program.
struct HelperLimits {
  i64 most_bytes = 0;
  i64 seconds = 0;
};
// The standard output of a program whose standard input is `input`. Throws kHelperFailed when it cannot be
// started, writes more than `most_bytes`, takes longer than `seconds`, or ends otherwise than with status
// 0; it is gone when this returns.
std::vector<u8> helper_output(const std::string& program, const std::vector<std::string>& arguments,
                              int input, const HelperLimits& limits);

}  // namespace mckpt::impl
