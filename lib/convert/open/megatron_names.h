// Whether the tensors of a store belong to Megatron's modules.
//
//   decoder.layers.0.self_attention.linear_qkv.weight    Megatron's
//   decoder.layers.0.self_attention.q_proj.weight        a model's own (Dia)
#pragma once

namespace mckpt::impl {

class Store;

// Whether a tensor is of a layer of Megatron's. False for a model of any other kind that was saved in one of
// Megatron's formats: its tensors have the model's own names behind a prefix.
bool has_megatron_names(const Store& store);

}  // namespace mckpt::impl
