// Shapes as tables and map files write them: dimensions in words, each a product of words and numbers.
//
//   "vocab hidden"   "experts 2*expert_ffn hidden"   "1 hidden"
#pragma once

#include <string_view>

#include "core/items/shape.h"
#include "mappings/config.h"

namespace mckpt {

// The words are listed in docs/adding_a_model.md. Throws kBadMap for a word that is not known, kModelNumbers
// for one that this model has no number for.
Shape shape_of(std::string_view text, const ModelConfig& model, const TowerConfig& tower);

// How many dimensions it has.
int shape_rank(std::string_view text);

// Throws kBadMap that names the first word that is not known.
void check_shape_text(std::string_view text);

}  // namespace mckpt
