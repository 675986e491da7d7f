// Names of layers in a hybrid model with groups: by group and member instead of by layer. The models are
// otherwise equal:
//
//   pattern [*-]M     decoder.layers.1.mlp.linear_fc1.weight  ->
//   decoder.layers.0.layers.1.mlp.linear_fc1.weight
//                     decoder.layers.2.mixer.D                ->  decoder.layers.1.mixer.D
//
// A pipeline stage counts its own items from 0: the stage of M alone has decoder.layers.0.mixer.D.
#pragma once

#include <string>
#include <vector>

namespace mckpt::impl {

struct LayerPattern;
struct ModelConfig;
struct ModelParameter;
struct StagePart;

// The pattern of a hybrid model, without groups: "M*-", followed by the part of every MTP depth; "" for a
// model with other layers.
std::string hybrid_pattern(const ModelConfig& model);

// Throws kBadPattern if the layers of the pattern, MTP included, are not the model's layers.
void refuse_other_pattern(const LayerPattern& pattern, const ModelConfig& model);

// Renames the parameters of a pipeline stage as in groups: their global names by the whole pattern, the names
// at run time by the stage's part of it. pre: the pattern is the model's, and the stage cuts no group.
void group_layers(const LayerPattern& pattern, const StagePart& stage,
                  std::vector<ModelParameter>& parameters);

}  // namespace mckpt::impl
