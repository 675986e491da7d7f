// The names of the files in a folder, for rules that look at names alone: what a folder would be with one
// file more can be asked too.
#pragma once

#include <string>

#include "core/base/name_hash.h"
#include "io/file/folder.h"

namespace mckpt::impl {

// Files in folders below it are not among them. Throws what Folder::entries() throws.
inline NameSet<std::string> file_names(const Folder& folder) {
  NameSet<std::string> names;
  for (const FolderEntry& e : folder.entries())
    if (!e.folder) names.insert(e.name);
  return names;
}

}  // namespace mckpt::impl
