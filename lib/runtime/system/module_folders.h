// The folders of files that are loaded or started on demand: modules and helper programs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mckpt::impl {

// The folders, each with a slash behind it: those of $MCKPT_MODULE_PATH (separated by ':'),
// that of the program,
// and ../lib/mckpt from there.
std::vector<std::string> module_folders();

}  // namespace mckpt::impl
