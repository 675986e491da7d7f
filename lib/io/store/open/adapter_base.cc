// An adapter is known by the names in its folder alone.
#include "io/store/open/adapter_base.h"

#include "io/file/archive.h"
#include "io/file/folder.h"

namespace mckpt::impl {

bool is_adapter_folder(const Folder& folder) {
  return folder.has_file(kAdapterConfig) && !folder.has_file("config.json");
}

bool is_adapter_folder(const std::string& path, const OpenOptions& opening) {
  return is_folder(path, opening) && is_adapter_folder(Folder(path, opening));
}

}  // namespace mckpt::impl
