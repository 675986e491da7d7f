// Facts that the names in a folder show, as far as the choice of a reader needs them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/file/folder.h"

namespace mckpt::impl {

struct FolderLook {
  // Looks at the folder, or at the folder `name_inside` in it. The folder outlives this.
  explicit FolderLook(const Folder& folder, std::string_view name_inside = "");

  const Folder& folder;
  std::vector<FolderEntry> entries;
  std::vector<std::string> iterations;   // folders that are called as Megatron calls iterations
  std::vector<std::string> torch_files;  // files with an ending of torch.save

  bool has_file(std::string_view name) const;
  bool has_file_ending(std::string_view end) const;
  bool has_folder(std::string_view name) const;
  bool has_folder_beginning(std::string_view begin) const;
  template <typename Is>
  bool any_file(const Is& is) const {
    for (const FolderEntry& e : entries)
      if (!e.folder && is(std::string_view(e.name))) return true;
    return false;
  }
  std::vector<std::string> names() const;

  // Whether a row of the table takes the folder for a checkpoint by its names alone.
  bool is_checkpoint() const;
};

}  // namespace mckpt::impl
