// What has to be known of the place where a result goes.
#pragma once

#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

std::string parent_folder(const std::string& path);

// Throws kNoRoom when the file system of the path's folder has fewer bytes, or fewer files, free.
void check_room(const std::string& path, i64 bytes, i64 files);

// Makes the names in a folder durable. Returns 0 or an errno.
int sync_folder(const std::string& folder);
// Makes a folder and all folders below it durable.
int sync_folders(const std::string& folder);
// Makes a folder and those above it that are missing; `durable`: their names are durable. Returns 0 or an
// errno.
int make_folders(const std::string& path, bool durable);

// Whether the path still leads to what was opened.
bool leads_to(int fd, const std::string& path);

}  // namespace mckpt::impl
