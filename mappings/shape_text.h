// Shapes as tables and map files write them: dimensions in words, each a product of words and numbers.
//
//   "vocab hidden"   "experts 2*expert_ffn hidden"   "1 hidden"
#pragma once

#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

class Shape;
struct ModelConfig;
struct TowerConfig;

// docs/adding_a_model.md lists the words. Throws kBadMap for an unknown word, kModelNumbers for a word for
// which the model has no number.
Shape shape_of(std::string_view text, const ModelConfig& model, const TowerConfig& tower);

// The number of dimensions.
int shape_rank(std::string_view text);

// Throws kBadMap that names the first word that is not known.
void check_shape_text(std::string_view text);

}  // namespace mckpt::impl
