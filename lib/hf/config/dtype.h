// The data type that a config.json promises for the weights, as a text that is changed in place: "dtype" or
// "torch_dtype" at the top, and in the configs of parts, such as "text_config", and of parts of these.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

enum class DType : u8;
struct SideFiles;

// `config_json` with each type that it promises replaced by `dtype`; unchanged if it promises none.
// Everything else, also the entry of a quantisation, stays as it is. pre: the text is a JSON object.
std::string with_config_dtype(std::string_view config_json, std::string_view dtype);

// The first type that the config.json of a result promises; nothing where it promises none.
std::optional<DType> config_dtype(const SideFiles& files);

// Writes the type into the config.json of a result, all other bytes of which stay. Returns whether it
// promised another one.
bool set_config_dtype(SideFiles& files, DType dtype);

}  // namespace mckpt::impl
