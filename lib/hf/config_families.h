// How each family spells its numbers in config.json.
#pragma once

#include <string_view>

namespace mckpt::impl {

class ConfigFields;
struct ModelConfig;

// Fills the model from the config's top-level object. pre: model_type is set. Throws kBadConfig,
// kUnsupportedModel.
using FamilyReader = void (*)(const ConfigFields& top, ModelConfig& model);

// By the family's name. Throws kInternal for a family without a reader (a test asks for all).
FamilyReader family_reader(std::string_view family);

}  // namespace mckpt::impl
