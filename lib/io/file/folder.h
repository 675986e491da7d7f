// Folder: the root of a checkpoint. Names that come from inside a checkpoint are opened through it and cannot
// leave it: not by "..", not by an absolute name, not by a symbolic link. One exception is built in: in a
// Hugging Face hub cache every file is a link,
//   models--org--name/snapshots/<revision>/model.safetensors -> ../../blobs/<hash>
// so there the boundary is the cache repository (models--org--name), not the snapshot. Who means links out of
// folders, such as those of a cluster whose checkpoints are spread over several file systems, says so for the
// whole program: follow_links().
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/file/file.h"

namespace mckpt::impl {

struct FolderEntry {
  std::string name;
  bool folder = false;  // as a link to one is
};

class Folder {
 public:
  // Opens a path that the user gave. Throws kNotFound, kNotAFolder, kReadFailed.
  explicit Folder(const std::string& path);
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }

  // From here on, links out of any folder are followed, or refused as they are to begin with.
  static void follow_links(bool yes);

  // The path of what the name is, or would be, for those who open files and folders by path. Throws kBadPath
  // for a link that leads out of the folder.
  std::string inside(std::string_view name) const;

  // Opens the regular file of that relative name. Throws kBadPath, kNotFound, kNotAFile, kReadFailed.
  InputFile open_file(std::string_view name, InputFile::Role role = InputFile::Role::kSource) const;
  // Its size, or nothing when no file of the name is there. Throws kBadPath, kNotAFile.
  std::optional<i64> file_bytes(std::string_view name) const;
  bool has_file(std::string_view name) const { return file_bytes(name).has_value(); }

  // The entries of the folder, or of the folder of that name below it, in natural order; hidden names too.
  std::vector<FolderEntry> entries(std::string_view name = "") const;

 private:
  int open_inside(std::string_view name, int flags) const;  // a descriptor, or -1 and errno

  std::string path_;
  int boundary_ = -1;   // the folder that nothing may leave
  std::string prefix_;  // from there to this folder: "" or "snapshots/<revision>/"
};

// Throws kBadPath unless the name is relative, without "..", ".", empty parts, NUL or backslash.
void check_inside_name(std::string_view name);

// openat2(RESOLVE_BENEATH) in user space, for kernels that lack it: a descriptor, or -1 and errno. Exposed
// for the tests.
int open_beneath_by_steps(int boundary, std::string_view name, int flags);

}  // namespace mckpt::impl
