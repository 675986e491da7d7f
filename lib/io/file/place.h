// The place where a result is going to be: whether there is room, and how names become durable.
//
// A file is safe from a power cut when its bytes are (fsync of the file) and its name is (fsync of the
// folder). The functions here do the second. They return an errno where the caller words the error.
#pragma once

#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

// "a/b" -> "a", "/b" -> "/", "b" -> "."
std::string parent_folder(const std::string& path);
// The end of the name of the hidden file or folder in which a result is made.
inline constexpr std::string_view kStagingSuffix = ".mckpt-tmp";

// Throws kNoRoom if the file system of the path's folder lacks free bytes or files, is read-only, is one
// of the kernel's own (/proc), or if the folder takes no files. Folders of the path need not exist yet. A
// file system that does not say how much room it has passes.
void check_room(const std::string& path, i64 bytes, i64 files);

// Makes the names in a folder durable. Returns 0 or an errno.
int sync_folder(const std::string& folder);
// Makes the names in a folder and in all folders below it durable. Returns 0 or an errno.
int sync_folders(const std::string& folder);
// Before a folder that was made just now is renamed. Btrfs notes in its log which names an fsync has to keep.
// If a folder was made and renamed in one transaction, the log of Linux 6.18 can keep both of its names, and
// after a power cut such a log cannot be replayed. So the transaction ends here. On other file systems
// nothing is done. An error is not told: the names are durable without this.
void end_transaction(const std::string& folder);
// Creates a folder and the missing folders above it; `durable`: also makes their names durable. Returns 0 or
// an errno.
int make_folders(const std::string& path, bool durable);

// Whether the path still leads to the opened file or folder: another process may have renamed it.
bool leads_to(int fd, const std::string& path);

}  // namespace mckpt::impl
