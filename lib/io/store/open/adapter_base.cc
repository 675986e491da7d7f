// An adapter is known by the names in its folder, or by those of its tensors.
#include "io/store/open/adapter_base.h"

#include <optional>

#include "core/base/error.h"
#include "io/file/archive.h"
#include "io/file/folder.h"
#include "io/store/open/torch_names.h"
#include "io/store/open/verl_layout.h"
#include "io/store/store.h"

namespace mckpt::impl {

namespace {

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

}  // namespace

bool is_adapter_folder(const Folder& folder) {
  if (folder.has_file("config.json")) return false;
  return folder.has_file(kAdapterConfig) || has_ranks_of_adapter(folder) || !verl_adapter(folder).empty();
}

bool is_adapter_folder(const std::string& path, const OpenOptions& opening) {
  return is_folder(path, opening) && is_adapter_folder(Folder(path, opening));
}

}  // namespace mckpt::impl
