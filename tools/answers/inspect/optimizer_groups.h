// `mckpt inspect --groups`: the parameter groups of the optimizer in a checkpoint, folded by equal settings.
//
//   optimizer.param_to_group_meta: 8 parameters in 2 groups
//   in all    betas (0.9, 0.95)  eps 1e-08  step 7  ...
//   group 0   5 parameters  wd_mult 1.0  weight_decay 0.1
//             decoder.layers.{0-1}.mlp.linear_fc1.weight  (2)
//   no group  1 tensor
//             embedding.word_embeddings.weight
#pragma once

namespace mckpt::impl {

class JsonWriter;
class Output;
class Store;

void write_optimizer_groups(Output& out, const Store& store);
// The object of the field `optimizer_groups`; null without groups.
void write_optimizer_groups(JsonWriter& json, const Store& store);

}  // namespace mckpt::impl
