// Starting mckpt-hdf5, the sandboxed program that opens HDF5 files, and taking its answer as bytes. Whatever
// it does, the caller continues in bounded time and memory.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class InputFile;

inline constexpr std::string_view kHdf5HelperPurpose = "HDF5 files (a program of its own, in a sandbox)";
inline constexpr std::string_view kHdf5HelperHelp =
    "apt-get install libhdf5-dev, and build with MCKPT_HDF5=ON";

// The path of the program, or "" when neither these folders nor those of runtime/system/module_folders.h have
// it.
std::string find_hdf5_helper(std::span<const std::string> folders);

// The version of the HDF5 library in it. Throws kHelperFailed.
std::string hdf5_helper_version(const std::string& program);

// Its answer about the file whose superblock is at that offset; it is looked for in these folders first. Throws kModuleMissing and kHelperFailed.
std::vector<u8> ask_hdf5_helper(const InputFile& file, i64 superblock, std::span<const std::string> folders);

// What any program writes to its standard output, `input` being its standard input. Throws kHelperFailed when
// it cannot be started, writes more than `most_bytes`, takes longer than `seconds`, or ends in another way
// than with status 0: then it is ended, and gone when this returns.
struct HelperLimits {
  i64 most_bytes = 0;
  i64 seconds = 0;
};
std::vector<u8> helper_output(const std::string& program, const std::vector<std::string>& arguments,
                              int input, const HelperLimits& limits);

}  // namespace mckpt::impl
