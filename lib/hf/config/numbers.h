// The integers of a config.json by where they are: "vocab_size", "vision_config.num_attention_heads". For
// rules that name an entry of any config, whether a table knows its model or not.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

class JsonValue;

using ConfigNumbers = std::map<std::string, i64, std::less<>>;

// The numbers of the config and of the parts in it, not of parts of parts. Numbers that are out of the range
// of numbers of a model are left out.
ConfigNumbers config_numbers(const JsonValue& config);

}  // namespace mckpt::impl
