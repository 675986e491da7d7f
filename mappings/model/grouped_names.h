// Names of layers in a hybrid model with groups: by group and member instead of by layer. The models are
// otherwise equal:
//
//   pattern [*-]M     decoder.layers.1.mlp.linear_fc1.weight  ->
//   decoder.layers.0.layers.1.mlp.linear_fc1.weight
//                     decoder.layers.2.mixer.D                ->  decoder.layers.1.mixer.D
#pragma once

#include <string>
#include <vector>

namespace mckpt::impl {

struct LayerPattern;
struct ModelConfig;
struct ModelParameter;

// The pattern of a hybrid model, without groups: "M*-", followed by the part of every MTP depth; "" for a
// model with other layers.
std::string hybrid_pattern(const ModelConfig& model);

// Throws kBadPattern if the layers of the pattern, MTP included, are not the model's layers.
void refuse_other_pattern(const LayerPattern& pattern, const ModelConfig& model);

// Renames the parameters as in groups. pre: the pattern is the model's.
void group_layers(const LayerPattern& pattern, std::vector<ModelParameter>& parameters);

}  // namespace mckpt::impl
