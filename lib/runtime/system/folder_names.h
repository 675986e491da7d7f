// The entries of folders. std::filesystem's iterators end the program where memory runs out while they make
// the path of an entry; these functions throw std::bad_alloc like all others.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace mckpt::impl {

enum class EntryKind { kFile, kFolder, kLink, kOther };

struct ListedEntry {
  std::string name;
  EntryKind kind;
};

// Adds the entries of a folder to `out`: in no order, hidden ones too, but not "." and "..". Returns 0, or an
// errno; entries that were read before the error are added.
int list_folder(const std::string& folder, std::vector<ListedEntry>& out);

// The same for an open folder, which the call closes.
int list_open_folder(int fd, std::vector<ListedEntry>& out);

// Calls `visit` with everything below a folder, as the path from there; a folder comes before what lies in
// it, and links are not followed. The walk ends where `visit` returns false. Returns 0, or the errno of a
// folder that cannot be listed.
int walk_folder(const std::string& folder,
                const std::function<bool(const std::string& path, EntryKind kind)>& visit);

}  // namespace mckpt::impl
