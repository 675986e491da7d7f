// The error for a path at which there is nothing: most are misspelt, or are names of a hub.
#pragma once

#include <string>

#include "core/base/error.h"

namespace mckpt::impl {

// kNotFound, with what was probably meant.
Error not_found(std::string path);

}  // namespace mckpt::impl
