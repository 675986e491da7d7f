// The config of a model without a family of its own.
#pragma once

namespace mckpt::impl {

class ConfigFields;
struct ModelConfig;

// The entries of any decoder under the names that most families give them: the reader of a map without a
// base. Attention or latent attention in every layer; dense MLPs, experts, or both.
void read_any(const ConfigFields& top, ModelConfig& m);

}  // namespace mckpt::impl
