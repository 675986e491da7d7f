// The modules that PEFT gives factors where an adapter's config does not name any (target_modules is null):
// it goes by the type of the model.
//
//   "target_modules": null, and a base of model_type qwen3     q_proj, v_proj
#pragma once

#include <string_view>

namespace mckpt::impl {

struct LoraConfig;

// Makes them the modules of a config that names none. Throws kBadConfig for a type that PEFT knows no modules
// of, unless the config names parameters; for a type that is not known ("") too.
void choose_targets(LoraConfig& config, std::string_view model_type);

}  // namespace mckpt::impl
