// Facts of a store from the configuration files of its Hugging Face folder:
//
//   config.json           architecture, model_type, quantized ("fp8, blocks of 128x128"), packed bits
//   adapter_config.json   adapter ("LORA, rank 8, of meta-llama/Llama-3.2-1B")
//
// Who needs the numbers of a model reads the config with all its checks (lib/hf).
#pragma once

#include <functional>
#include <string>

namespace mckpt::impl {

class Folder;
class Store;
struct Finding;

// Adds facts to the store. A file with a fault in it becomes a warning; one that cannot be read is an error, because
// results depend on these facts.
// verl writes config.json into a folder huggingface/ beside its files; it is read if there is no other.
void add_config_facts(const Folder& folder, Store& store, const std::function<void(Finding)>& warn);

// The fact "adapter"; "" if the folder has no adapter_config.json. Throws what parse_json() throws.
std::string adapter_text(const Folder& folder);

}  // namespace mckpt::impl
