// Tells the names of assets in a folder that has files of a training run too: any other file may be a state
// of the run.
#pragma once

#include <string_view>

namespace mckpt::impl {

// config.json and others that transformers names; ends of names such as the names of chat templates and code.
bool is_known_asset(std::string_view name);

}  // namespace mckpt::impl
