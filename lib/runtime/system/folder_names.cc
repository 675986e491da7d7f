#include "runtime/system/folder_names.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string_view>

#include "core/base/text.h"

namespace mckpt::impl {
namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

EntryKind kind_of(mode_t mode) {
  return S_ISREG(mode)   ? EntryKind::kFile
         : S_ISDIR(mode) ? EntryKind::kFolder
         : S_ISLNK(mode) ? EntryKind::kLink
                         : EntryKind::kOther;
}

// Not every file system tells the kind of an entry with its name.
EntryKind kind_of(DIR* folder, const dirent& entry) {
  struct stat st;
  if (entry.d_type != DT_UNKNOWN) return kind_of(DTTOIF(entry.d_type));
  bool known = ::fstatat(::dirfd(folder), entry.d_name, &st, AT_SYMLINK_NOFOLLOW) == 0;
  return known ? kind_of(st.st_mode) : EntryKind::kOther;
}

}  // namespace

int list_open_folder(int fd, std::vector<ListedEntry>& out) {
  std::unique_ptr<DIR, CloseFolder> folder(::fdopendir(fd));
  if (!folder) {
    int error = errno;
    ::close(fd);
    return error;
  }
  for (errno = 0; const dirent* entry = ::readdir(folder.get()); errno = 0) {
    std::string_view name = entry->d_name;
    if (name != "." && name != "..") out.push_back({std::string(name), kind_of(folder.get(), *entry)});
  }
  return errno;
}

int list_folder(const std::string& folder, std::vector<ListedEntry>& out) {
  int fd = -1;
  do fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
  while (fd < 0 && errno == EINTR);
  return fd < 0 ? errno : list_open_folder(fd, out);
}

int walk_folder(const std::string& folder,
                const std::function<bool(const std::string& path, EntryKind kind)>& visit) {
  std::vector<std::string> waiting{""};
  while (!waiting.empty()) {
    std::string above = std::move(waiting.back());
    waiting.pop_back();
    std::vector<ListedEntry> entries;
    if (int error = list_folder(cat(folder, "/", above), entries); error != 0) return error;
    for (const ListedEntry& entry : entries) {
      std::string path = above.empty() ? entry.name : cat(above, "/", entry.name);
      if (!visit(path, entry.kind)) return 0;
      if (entry.kind == EntryKind::kFolder) waiting.push_back(std::move(path));
    }
  }
  return 0;
}

}  // namespace mckpt::impl
