// The word in a key, and the folder by its config.
#include "io/dcp/keys/bridge_adapter.h"

#include "core/base/error.h"
#include "io/file/folder.h"
#include "io/store/open/adapter_base.h"
#include "io/store/open/verl_layout.h"
#include "io/store/store.h"

namespace mckpt::impl {

bool is_bridge_adapter(std::string_view key) { return key.find(".adapter.") != key.npos; }

bool has_bridge_adapter(const Store& store) {
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (is_bridge_adapter(store.name(t))) return true;
  return false;
}

std::string exported_adapter(const Store& store) {
  try {
    const Folder folder(store.root(), store.opening());
    const std::string path = cat(kVerlAdapter, "/", kAdapterConfig);
    return folder.has_file(path) ? folder.inside(std::string(kVerlAdapter)) : "";
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
    return "";  // a file by itself has no folder
  }
}

}  // namespace mckpt::impl
