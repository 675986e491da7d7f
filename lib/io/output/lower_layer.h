// Folders of the lower layers of overlayfs, as in an image: files in them can be replaced, and they can be
// removed, but not renamed (unless it is mounted with redirect_dir=on). A result replaces a folder by a
// rename, so this is asked before the work.
#pragma once

#include <string>
#include <string_view>

namespace mckpt::impl {

inline constexpr std::string_view kLowerLayer =
    "the folder to be replaced is one of a lower layer of overlayfs, as in an image, and cannot be renamed";

// How it becomes a folder that can be renamed.
std::string help_of_lower_layer(const std::string& folder);

// Whether overlayfs would refuse to rename the folder; false on every other file system. Changes nothing.
// pre: `full` is a folder beside it that has files.
bool is_of_lower_layer(const std::string& folder, const std::string& full);

}  // namespace mckpt::impl
