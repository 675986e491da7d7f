// Buffers that a model computes from its config, in the folders of its older releases. Newer programs neither
// save nor load them, so that checkpoints have none:
//
//   Llama 2        model.layers.0.self_attn.rotary_emb.inv_freq    [64]
//   gpt2           h.0.attn.bias                                   [1, 1, 1024, 1024]
//   BERT, CLIP     bert.embeddings.position_ids                    [1, 512]
#pragma once

#include <string>
#include <vector>

namespace mckpt::impl {

class Store;
struct KnownTensors;

// Takes the buffers that the store does not have out of the tensors of a model's folder. Returns their names.
std::vector<std::string> leave_out_buffers(KnownTensors& own, const Store& store);

}  // namespace mckpt::impl
