// A hybrid model whose layers stand in groups calls them by group and member. The model is the same
// otherwise:
//
//   pattern [*-]M     decoder.layers.1.mlp.linear_fc1.weight  ->
//   decoder.layers.0.layers.1.mlp.linear_fc1.weight
//                     decoder.layers.2.mixer.D                ->  decoder.layers.1.mixer.D
#pragma once

#include "core/hybrid/pattern.h"
#include "mappings/model/expand.h"

namespace mckpt {

// The pattern of a hybrid model, without groups: "M*-", with the part of every MTP depth behind it; "" for a
// model of other layers.
std::string hybrid_pattern(const ModelConfig& model);

// Throws kBadPattern when the pattern's layers, those of MTP included, are not those of the model.
void refuse_other_pattern(const LayerPattern& pattern, const ModelConfig& model);

// Gives the parameters the names that they have in groups. pre: the pattern is the model's.
void group_layers(const LayerPattern& pattern, std::vector<ModelParameter>& parameters);

}  // namespace mckpt
