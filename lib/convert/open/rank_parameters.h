// The parameters of the model in files of Megatron's ranks, each counted once, whatever the number of ranks
// that have it. Both answers go by the config in hf_assets and by headers alone.
//
//   mp_rank_00/model.decoder.final_layernorm.weight   0   a parameter
//   mp_rank_00/model.embedding.word_embeddings.weight 1   the upper rows of one
//   mp_rank_01/model.decoder.final_layernorm.weight   0   a copy of tensor 0
//   mp_rank_01/model.embedding.word_embeddings.weight 3   the lower rows
#pragma once

#include <optional>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;

// Whether several ranks may have one parameter, each in a tensor of its own.
bool has_rank_copies(const Store& store);

// The number of parameters, with rows of padding. Nothing for another format, without that config, and for
// files that are not that model.
std::optional<i64> parameters_of_ranks(const Store& store);

// For each tensor of the store, the tensor that has the same items first: itself, unless it is a copy. -1:
// the model does not use it. Nothing where parameters_of_ranks() is nothing, and if one is a copy in part.
std::optional<std::vector<i64>> originals_of_ranks(const Store& store);

}  // namespace mckpt::impl
