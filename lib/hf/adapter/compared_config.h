// adapter_config.json as it is compared with another adapter's:
//
//   {"target_modules": ["v_proj", "q_proj"], "use_dora": false, "r": 8}      a set, and what PEFT has without it
//   {"target_modules": ["q_proj", "v_proj"], "r": 8, "kasa_config": null}    says the same
#pragma once

#include <string_view>

namespace mckpt::impl {

class JsonValue;

// With sets in one order, and without entries that say what PEFT does without them. Any other value as it is.
// Throws kBadJson.
JsonValue comparable_config(std::string_view text);

}  // namespace mckpt::impl
