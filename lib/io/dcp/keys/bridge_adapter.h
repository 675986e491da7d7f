// Keys of the adapters of Megatron-Bridge, which are modules inside of the layers that they adapt. A run with
// PEFT saves them beside the weights of the base, or alone:
//
//   decoder.layers.self_attention.linear_qkv.weight                        [4, 80, 24]   of the base, as it was
//   decoder.layers.self_attention.linear_qkv.adapter.linear_in.weight      [4, 3, 24]    of the adapter
//   decoder.layers.self_attention.linear_qkv.adapter.linear_out.weight     [4, 80, 3]
//
// The factor of their product (alpha / rank) is not in the checkpoint. Bridge's export of the adapter in
// PEFT's form has it.
#pragma once

#include <string>
#include <string_view>

namespace mckpt::impl {

class Store;

bool is_bridge_adapter(std::string_view key);
bool has_bridge_adapter(const Store& store);

// Where verl puts Bridge's export of the adapter, in the folder of a checkpoint; "" if it is not there.
std::string exported_adapter(const Store& store);

}  // namespace mckpt::impl
