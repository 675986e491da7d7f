// Opens an adapter as a model: by the model that it changes, which is elsewhere. Options of opening carry
// it (io/file/open_options.h), so that every reader of a path takes a folder with an adapter too:
//
//   opening.base = adapter_base("Qwen3-0.6B");         hf/adapter/adapted_store.h
//   open_store("checkpoint-500", opening)              Qwen3-0.6B with the adapter of checkpoint-500 in it
//   open_store("Qwen3-0.6B", opening)                  Qwen3-0.6B: it has no adapter
#pragma once

#include <memory>
#include <string>

#include "io/file/open_options.h"

namespace mckpt::impl {

class Folder;
class Store;

inline constexpr const char* kAdapterConfig = "adapter_config.json";
// The file that verl writes beside the files of ranks of a run with LoRA.
inline constexpr const char* kTrainMeta = "lora_train_meta.json";
// Files with the config of an adapter beside a checkpoint of its model, in the order in which they are looked
// for.
inline constexpr const char* kConfigsBeside[] = {kAdapterConfig, "lora_adapter/adapter_config.json",
                                                 kTrainMeta};

class AdapterBase {
 public:
  virtual ~AdapterBase() = default;
  // The folder or file of the model.
  virtual const std::string& path() const = 0;
  // The model with the adapter that is in the folder `adapter`.
  virtual std::unique_ptr<Store> open(const std::string& adapter, const OpenOptions& opening) const = 0;
};

// Whether the folder has an adapter and no model: an adapter_config.json without a config.json, or with one
// and no weights but the adapter's; files of ranks that have an adapter alone, or what verl saves of a run of
// Megatron with PEFT (verl_layout.h).
bool is_adapter_folder(const Folder& folder);
// The folder of an adapter that opening the path leads to: itself, or the only checkpoint in it. "": none.
std::string adapter_folder_at(const std::string& path, const OpenOptions& opening);
// Whether there is one; false for a file.
bool is_adapter_folder(const std::string& path, const OpenOptions& opening);

}  // namespace mckpt::impl
