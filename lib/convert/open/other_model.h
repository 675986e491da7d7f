// Whether a config.json describes the model that a checkpoint was trained from, by the numbers that both
// have:
//
//   args of the checkpoint   hidden_size 64, num_attention_heads 4, num_query_groups 2
//   config.json              hidden_size 64, num_attention_heads 2, num_query_groups 2      another model
#pragma once

namespace mckpt::impl {

class Store;
struct HfModel;

// A wrong number of heads or groups cannot be seen in the shapes: fused queries, keys and values have the
// same rows, in another order. Throws kContradiction with up to three numbers that differ.
void refuse_other_model(const Store& store, const HfModel& model);

}  // namespace mckpt::impl
