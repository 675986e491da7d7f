// A model that was saved as PEFT has it in memory: the base with an adapter around its modules, in one
// checkpoint. The FSDP engine of verl saves its runs with LoRA so.
//
//   base_model.model.model.layers.0.self_attn.q_proj.base_layer.weight        of the base
//   base_model.model.model.layers.0.self_attn.q_proj.lora_A.default.weight    of the adapter, which is called "default"
//   base_model.model.model.norm.weight                                        of the base
//   base_model.model.model.embed_tokens.token_adapter.base_layer.weight       of the base
//   base_model.model.model.embed_tokens.token_adapter.trainable_tokens_delta.default   of the adapter
//
// Read as a model, it is the base with the adapter in it, as merge_and_unload makes it. The multiplier of the
// factors is in a file beside (io/store/open/adapter_base.h: kConfigsBeside).
#pragma once

#include <memory>
#include <string>

namespace mckpt::impl {

class Folder;
class Store;
struct BaseFacts;
struct LoraConfig;

// Whether names of the store belong to a wrapped model.
bool is_wrapped_model(const Store& store);
// Whether it has tensors of an adapter and none of its base (verl's save_lora_only).
bool is_adapter_alone(const Store& store);

// The config of a wrapped model in this folder. Throws kBadConfig where no file has it and where
// two have other numbers, and what read_lora_config() throws.
LoraConfig config_beside(const Folder& folder);

// The model with the adapter in it, under the names of the base; what is beside the model stays. A store that
// is not a wrapped model is returned as it is. `facts`: of the model's config.json; its names are those in
// memory, as the wrapped ones are. Throws what config_beside() and AdaptedStore throw; kUnsupportedTensor for
// several adapters, kNotFound for an adapter alone.
std::unique_ptr<Store> unwrapped_model(std::unique_ptr<Store> store, const BaseFacts& facts);

// The tensors of an adapter alone, under the names of a folder of PEFT.
std::unique_ptr<Store> unwrapped_adapter(std::unique_ptr<Store> store);

}  // namespace mckpt::impl
