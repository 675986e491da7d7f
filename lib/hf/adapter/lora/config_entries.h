// The entries of adapter_config.json: an entry is read, it does not change the merged model, or its adapters
// are not computed.
#pragma once

#include <string_view>

namespace mckpt::impl {

class JsonValue;

// Whether any value of the entry is read, or does not matter.
bool is_known_entry(std::string_view key);
// Whether the merged model does not depend on the entry.
bool is_without_effect(std::string_view key);
// Whether PEFT does with this value what it does without the entry: an entry that is not known may have it.
bool says_nothing(std::string_view key, const JsonValue& value);

}  // namespace mckpt::impl
