// The presets of compressed-tensors: names that stand for the settings of a group in `config_groups`, which
// is then a list of modules.
//
//   "config_groups": {"W4A16": ["Linear"]}      int, 4 bits, groups of 128
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "hf/quantized/config.h"

namespace mckpt::impl {

// The settings that weights have by this name, in upper or lower case; several where releases of the library
// differ, and none where the name leaves weights as they are. Nothing for a name that no release up to 0.20
// has.
std::optional<std::vector<QuantConfig::Weights>> preset_weights(std::string_view name);

}  // namespace mckpt::impl
