// Carries out the steps by which a family's table says how config.json spells its numbers
// (mappings/config_steps.h).
#pragma once

#include <span>

namespace mckpt::impl {

class ConfigFields;
struct ConfigStep;
struct ModelConfig;

// Fills the model from the object of the config; whole models have the config itself. pre: model.model_type
// is set. Throws kBadConfig for a missing or impossible entry, kUnsupportedModel for a feature that
// Megatron's model of the family lacks, kInternal for a function that does not exist (a test asks for all).
void read_steps(const ConfigFields& c, std::span<const ConfigStep> steps, ModelConfig& m);

}  // namespace mckpt::impl
