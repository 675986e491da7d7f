// An adapter is known by the names in its folder, or by the names of its tensors.
#include "io/store/open/adapter_base.h"

#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "io/file/folder.h"
#include "io/store/names/dcp_names.h"
#include "io/store/names/torch_names.h"
#include "io/store/open/beside.h"
#include "io/store/open/checkpoints_below.h"
#include "io/store/open/verl_layout.h"
#include "io/store/store.h"

namespace mckpt::impl {

namespace {

constexpr const char* kAdapterWeights = "adapter_model.safetensors";

// verl's save_lora_only: files of ranks, which have the tensors of an adapter alone.
bool has_ranks_of_adapter(const Folder& folder) {
  if (!folder.has_file(kTrainMeta)) return false;
  for (const FolderEntry& e : folder.entries()) {
    const std::optional<RankName> name = e.folder ? std::nullopt : rank_name(e.name);
    if (!name || name->group != "model") continue;
    try {
      const std::unique_ptr<Store> ranks = open_torch_file(folder.inside(e.name), folder.opening());
      for (i64 t = 0; t < ranks->tensor_count(); t++)
        if (ranks->name(t).find(".lora_") == std::string_view::npos) return false;
      return ranks->tensor_count() > 0;
    } catch (const Error& error) {
      if (error.code() == Code::kInterrupted) throw;
      return false;  // what is wrong with the file is said where it is opened
    }
  }
  return false;
}

// Files of weights that do not belong to an adapter.
bool has_model_weights(const Folder& folder) {
  auto is_weights = [](const FolderEntry& e) {
    return !e.folder && e.name != kAdapterWeights &&
           (e.name.ends_with(".safetensors") || e.name.ends_with(".index.json") ||
            e.name.ends_with(".gguf") || is_dcp_data(e.name) || e.name.starts_with("pytorch_model"));
  };
  return std::ranges::any_of(folder.entries(), is_weights);
}

}  // namespace

bool is_adapter_folder(const Folder& folder) {
  // Some programs save the config of the base beside the adapter.
  if (folder.has_file("config.json"))
    return folder.has_file(kAdapterConfig) && folder.has_file(kAdapterWeights) && !has_model_weights(folder);
  return folder.has_file(kAdapterConfig) || has_ranks_of_adapter(folder) || !verl_adapter(folder).empty();
}

std::string adapter_folder_at(const std::string& path, const OpenOptions& opening) {
  if (!is_folder(path, opening)) return "";
  const Folder folder(path, opening);
  if (is_adapter_folder(folder)) return path;
  if (!is_folder_of_folders(folder)) return "";
  const std::string only = only_checkpoint(checkpoints_below(folder));
  return only.empty() ? "" : adapter_folder_at(folder.inside(only), opening);
}

bool is_adapter_folder(const std::string& path, const OpenOptions& opening) {
  return !adapter_folder_at(path, opening).empty();
}

}  // namespace mckpt::impl
