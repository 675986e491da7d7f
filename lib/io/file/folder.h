// Folder: the root of a checkpoint. Names that come from inside a checkpoint (an index, a manifest,
// .metadata) are opened through it and cannot leave it: not by "..", not by an absolute name, not by a
// symbolic link. So a downloaded checkpoint cannot make mckpt read /etc/passwd into a result.
//
// One exception is built in. In a Hugging Face hub cache every file is a link,
//   models--org--name/snapshots/<revision>/model.safetensors -> ../../blobs/<hash>
// so there the boundary is the cache repository (models--org--name), not the snapshot. Users whose
// checkpoints are spread over several file systems by links allow links out of folders, by
// OpenOptions::follow_links.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/file/file.h"

namespace mckpt::impl {

// A name in a folder.
struct FolderEntry {
  std::string name;
  bool folder = false;  // also for a link to a folder
};

// Keeps the folder open, so that names are looked up in the same folder even if its path is renamed. All
// functions are thread-safe.
class Folder {
 public:
  // Opens a path that the user gave. Files in it are opened with the same options. Throws kNotFound,
  // kNotAFolder, kReadFailed.
  explicit Folder(const std::string& path, OpenOptions opening = {});  // the path may lead into a container
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  const OpenOptions& opening() const { return opening_; }

  // path()/name, for callers that open files and folders by path; nothing of the name need exist. Throws
  // kBadPath for a link that leads out of the folder.
  std::string inside(std::string_view name) const;

  // Opens the regular file `name`, relative to the folder. Throws kBadPath, kNotFound, kNotAFile,
  // kReadFailed.
  InputFile open_file(std::string_view name) const;
  // The size of the file, or nothing if the folder has no file of the name. The stamps note the file as they
  // note an opened one. Throws kBadPath, kNotAFile, kReadFailed.
  std::optional<i64> file_bytes(std::string_view name) const;
  bool has_file(std::string_view name) const { return file_bytes(name).has_value(); }

  // The entries of the folder, or of the folder `name` in it, in natural order; hidden names too. Throws
  // kBadPath, kNotFound, kReadFailed.
  std::vector<FolderEntry> entries(std::string_view name = "") const;

 private:
  int open_inside(std::string_view name, int flags) const;  // a descriptor, or -1 and errno
  std::string in_container(std::string_view name) const;    // pre: container_ is set

  std::string path_;
  OpenOptions opening_;
  std::shared_ptr<const Container> container_;  // whose folder this is; null: a folder of the system
  int boundary_ = -1;                           // the folder that nothing may leave
  // From there to this folder: "" or "snapshots/<revision>/"; in a container "" or "hf_assets/"
  std::string prefix_;
};

// Whether the path leads to a folder; a container is one, and has folders.
bool is_folder(const std::string& path, const OpenOptions& opening);
// Whether it leads to a regular file, which may be in a container.
bool is_file(const std::string& path, const OpenOptions& opening);

// Throws kBadPath unless the name is relative, without "..", ".", empty parts, NUL or backslash.
void check_inside_name(std::string_view name);

// openat2(RESOLVE_BENEATH) in user space, for kernels that lack it: a descriptor, or -1 and errno (EXDEV if
// the name leads out of the boundary). Exposed for the tests.
int open_beneath_by_steps(int boundary, std::string_view name, int flags);

}  // namespace mckpt::impl
