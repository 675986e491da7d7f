// $MCKPT_MODULE_PATH: folders with modules and helper programs, for those who keep them in a place of their
// own.
#pragma once

#include <string>
#include <vector>

namespace mckpt::impl {

// The folders of the variable, which separates them by ':'; none if it is not set.
std::vector<std::string> module_path();

}  // namespace mckpt::impl
