// Opens names below a folder so that no link leads out of it: by openat2 (Linux 5.6), or step by step where
// the kernel or the sandbox of a container does not know that call. The walk opens one part of the name after
// the other without following links; a part that is a link is replaced by its text.
//
//   left of the name    open folders below the boundary         name: "a/link/c", where a/link -> "../b"
//   a/link/c            none
//   link/c              a
//   ../b/c              a        the link is replaced by its text
//   b/c                 none     ".." closes a
//   c                   b        the last part is the result
//
// A ".." with no open folder, and a link to an absolute path, end with EXDEV; more than 40 links end with
// ELOOP, as in the kernel. A rename during the walk cannot lead out: each step starts from a folder that is
// open.
#include "io/file/folder.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>

#include "core/base/error.h"
#include "core/base/names.h"
#include "io/file/container.h"
#include "io/file/denied.h"
#include "io/file/hub_cache.h"
#include "io/file/retried.h"
#include "runtime/system/folder_names.h"

namespace mckpt::impl {
namespace {

constexpr int kReadFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
constexpr int kFolderFlags = O_RDONLY | O_CLOEXEC | O_DIRECTORY;

// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& from) noexcept : fd_(std::exchange(from.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& from) noexcept {
    std::swap(fd_, from.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// Deleters, so that unique_ptr owns what the C library hands out.
struct FreeText {
  void operator()(char* text) const { std::free(text); }
};

std::string_view take_part(std::string_view& path) {
  std::size_t slash = std::min(path.find('/'), path.size());
  std::string_view part = path.substr(0, slash);
  path.remove_prefix(std::min(slash + 1, path.size()));
  return part;
}

int open_beneath(int boundary, const std::string& name, int flags) {
  open_how how{};
  how.flags = static_cast<u64>(flags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  long fd;
  do {
    fd = ::syscall(SYS_openat2, boundary, name.c_str(), &how, sizeof how);
  } while (fd < 0 && (errno == EINTR || errno == EAGAIN));  // EAGAIN: a rename raced with the walk
  // EPERM is what container sandboxes answer for system calls that they do not know.
  if (fd < 0 && (errno == ENOSYS || errno == EPERM)) return open_beneath_by_steps(boundary, name, flags);
  return static_cast<int>(fd);
}

std::string real_path(const std::string& path) {
  std::unique_ptr<char, FreeText> real(::realpath(path.c_str(), nullptr));
  return real ? std::string(real.get()) : path;
}

// "/cache/models--o--n/snapshots/abc/sub" -> "/cache/models--o--n" if that folder contains blobs/; otherwise
// "".
std::string cache_repository(const std::string& real) {
  std::size_t at = real.rfind("/snapshots/");
  if (at == std::string::npos || at == 0) return "";
  std::string repository = real.substr(0, at);
  struct stat st;
  bool has_blobs = ::lstat((repository + "/blobs").c_str(), &st) == 0 && S_ISDIR(st.st_mode);
  return has_blobs ? repository : "";
}

[[noreturn]] void throw_bad_path(std::string_view name, std::string_view why, std::string_view or_else = "") {
  throw Error(Code::kBadPath, cat("the name '", escaped(name), "' ", why))
      .help(cat("names inside a checkpoint stay inside its folder; move or copy the files into it", or_else));
}

}  // namespace

void check_inside_name(std::string_view name) {
  if (name.empty()) throw_bad_path(name, "of a file is empty");
  if (name.size() >= PATH_MAX) throw_bad_path(name, "is too long for a path");
  if (name[0] == '/') throw_bad_path(name, "is an absolute path");
  if (name.find('\0') != name.npos) throw_bad_path(name, "of a path holds a NUL byte");
  if (name.find('\\') != name.npos) throw_bad_path(name, "of a path holds a backslash");
  if (name.ends_with('/')) throw_bad_path(name, "is the path of a folder, not of a file");
  for (std::string_view rest = name; !rest.empty();) {
    std::string_view part = take_part(rest);
    if (part == "..") throw_bad_path(name, "is a path that leads outside of its folder (..)");
    if (part == "." || part.empty()) throw_bad_path(name, "is not a plain path: it has an empty part or '.'");
  }
}

int open_beneath_by_steps(int boundary, std::string_view name, int flags) {
  std::vector<Descriptor> folders;  // those that the walk is in, from the boundary down
  std::string rest(name);
  for (int links = 0; !rest.empty();) {
    std::string_view tail = rest;
    std::string part(take_part(tail));
    std::string after(tail);
    int at = folders.empty() ? boundary : folders.back().get();
    if (part == "..") {
      if (folders.empty()) return errno = EXDEV, -1;
      folders.pop_back();
    } else if (!part.empty() && part != ".") {
      bool last = after.find_first_not_of('/') == after.npos;
      int how = (last ? flags : kFolderFlags) | O_NOFOLLOW;
      int fd = retried([&] { return ::openat(at, part.c_str(), how); });
      // A link shows as ELOOP, or as ENOTDIR where a folder was asked for.
      char target[PATH_MAX];
      ssize_t n = fd < 0 ? ::readlinkat(at, part.c_str(), target, sizeof target) : -1;
      // Not a link: opened once more, for the errno of the open.
      if (fd < 0 && n < 0) return retried([&] { return ::openat(at, part.c_str(), how); });
      if (fd < 0) {
        if (++links > 40) return errno = ELOOP, -1;
        if (n == 0 || target[0] == '/' || n == sizeof target) return errno = EXDEV, -1;
        after = cat(std::string_view(target, static_cast<std::size_t>(n)), "/", after);
      } else if (last) {
        return fd;
      } else {
        folders.emplace_back(fd);
      }
    }
    rest = std::move(after);
  }
  // The walk ended on "..", ".", or a link to a folder.
  int at = folders.empty() ? boundary : folders.back().get();
  return retried([&] { return ::openat(at, ".", flags); });
}

Folder::Folder(const std::string& path, OpenOptions opening) : path_(path), opening_(std::move(opening)) {
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  if (std::optional<PlaceInside> inside = find_inside(path_, opening_)) {
    container_ = std::move(inside->container);
    if (!container_->has_folder(inside->name)) {
      bool file = container_->find(inside->name) >= 0;
      throw Error(file ? Code::kNotAFolder : Code::kNotFound,
                  file ? "this is not a folder" : "the archive has no such folder")
          .file(path_);
    }
    if (!inside->name.empty()) prefix_ = inside->name + "/";
    return;
  }
  std::string real = real_path(path_);
  std::string repository = cache_repository(real);
  if (!repository.empty()) prefix_ = real.substr(repository.size() + 1) + "/";
  boundary_ =
      retried([&] { return ::open((repository.empty() ? path_ : repository).c_str(), kFolderFlags); });
  if (boundary_ >= 0) {
    if (!repository.empty()) return;
    // The folder of a hub's cache stands for its snapshot.
    if (std::optional<HubSnapshot> snapshot = hub_snapshot(path_)) {
      path_ += cat("/", snapshot->name);
      prefix_ = snapshot->name + "/";
    }
    return;
  }
  if (errno == ENOTDIR)
    throw Error(Code::kNotAFolder, "this is not a folder")
        .file(path_)
        .help("name the folder that contains the file, not the file");
  const int error = errno;
  Error e(error == ENOENT ? Code::kNotFound : Code::kReadFailed,
          cat("cannot open the folder: ", errno_text(error)));
  explain_denied(e, path_, error);
  throw e.file(path_).of_the_moment(error != ENOENT && !is_about_rights(error));
}

Folder::~Folder() {
  if (boundary_ >= 0) ::close(boundary_);
}

int Folder::open_inside(std::string_view name, int flags) const {
  check_inside_name(name);
  if (opening_.follow_links)
    return retried([&] { return ::openat(boundary_, cat(prefix_, name).c_str(), flags); });
  int fd = open_beneath(boundary_, cat(prefix_, name), flags);
  if (fd < 0 && errno == ELOOP)
    throw_bad_path(name, "is a link that leads to itself, or the first of too many links");
  if (fd < 0 && errno == EXDEV)
    throw_bad_path(name, "is a link that leads outside of its folder",
                   ", or, if the link is your own, use `follow_links`");
  return fd;
}

std::string Folder::in_container(std::string_view name) const {
  check_inside_name(name);
  return cat(prefix_, name);
}

std::string Folder::inside(std::string_view name) const {
  std::string path = cat(path_, "/", name);
  if (container_) return with_file(path, [&] { in_container(name); }), path;
  with_file(path, [&] { Descriptor(open_inside(name, O_PATH | O_CLOEXEC)); });
  return path;
}

InputFile Folder::open_file(std::string_view name) const {
  std::string path = cat(path_, "/", name);
  return with_file(path, [&] {
    if (!container_) return InputFile(open_inside(name, kReadFlags), path, opening_);
    i64 file = container_->find(in_container(name));
    if (file < 0) throw_open_failed(path, container_->has_folder(in_container(name)) ? EISDIR : ENOENT);
    return InputFile(container_, file, path);
  });
}

std::optional<i64> Folder::file_bytes(std::string_view name) const {
  std::string path = cat(path_, "/", name);
  return with_file(path, [&]() -> std::optional<i64> {
    if (container_) {
      i64 file = container_->find(in_container(name));
      return file < 0 ? std::nullopt : std::optional(container_->file_bytes(file));
    }
    Descriptor fd(open_inside(name, O_PATH | O_CLOEXEC));
    struct stat st;
    if (fd.get() < 0 && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
    if (fd.get() < 0 || ::fstat(fd.get(), &st) != 0) throw_open_failed(path, errno);
    if (!S_ISREG(st.st_mode))
      throw Error(Code::kNotAFile, "this is a folder, a pipe or a device, not a file");
    return (opening_.stamps ? opening_.stamps->look(fd.get(), path) : stamp_of_open(fd.get(), path)).bytes;
  });
}

std::vector<FolderEntry> Folder::entries(std::string_view name) const {
  std::string path = name.empty() ? path_ : cat(path_, "/", name);
  if (container_) {
    std::string inner =
        name.empty() ? prefix_.substr(0, prefix_.empty() ? 0 : prefix_.size() - 1) : in_container(name);
    if (!container_->has_folder(inner))
      throw_open_failed(path, container_->find(inner) < 0 ? ENOENT : ENOTDIR);
    return container_->entries(inner);
  }
  Descriptor folder(with_file(path, [&] {
    return name.empty() ? open_beneath(boundary_, prefix_.empty() ? "." : prefix_, kFolderFlags)
                        : open_inside(name, kFolderFlags);
  }));
  if (folder.get() < 0) throw_open_failed(path, errno);
  int to_list = ::fcntl(folder.get(), F_DUPFD_CLOEXEC, 0);  // the list closes what it reads
  std::vector<ListedEntry> entries;
  int error = to_list < 0 ? errno : list_open_folder(to_list, entries);
  if (error != 0) throw_open_failed(path, error);
  const auto leads_to_folder = [&](const std::string& link) {
    struct stat st;
    return ::fstatat(folder.get(), link.c_str(), &st, 0) == 0 && S_ISDIR(st.st_mode);
  };
  std::vector<FolderEntry> out;
  for (ListedEntry& e : entries) {
    bool is_folder = e.kind == EntryKind::kFolder || (e.kind == EntryKind::kLink && leads_to_folder(e.name));
    out.push_back({std::move(e.name), is_folder});
  }
  std::sort(out.begin(), out.end(),
            [](const FolderEntry& a, const FolderEntry& b) { return natural_less(a.name, b.name); });
  return out;
}

}  // namespace mckpt::impl
