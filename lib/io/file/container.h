// Container: a file, or a folder of files, that has the files of a folder in it, as an HDF5 archive has.
// Paths lead into one as they lead into a folder, so that no reader of a format knows of containers:
//
//   InputFile("ckpt.h5/config.json")        a file in the container ckpt.h5
//   Folder("ckpt")                          the files in the container ckpt, whatever the folder itself has
//
// Which files are containers is known by those who make Containers (io/archive/archive.cc); OpenOptions carry
// them. Here is only where paths ask.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "io/file/open_options.h"

namespace mckpt::impl {

struct FileStamp;
struct FolderEntry;

// Const functions are thread-safe.
class Container {
 public:
  virtual ~Container() = default;
  virtual i64 find(std::string_view name) const = 0;  // the number of a file; -1: there is none
  virtual i64 file_bytes(i64 file) const = 0;
  virtual bool has_folder(std::string_view name) const = 0;  // "": the container itself
  virtual std::vector<FolderEntry> entries(std::string_view folder) const = 0;
  // pre: the bytes are inside of the file. Throws kReadFailed, and kNotFound for a part that is missing.
  virtual void read(i64 file, i64 offset, std::span<u8> to) const = 0;
  virtual const FileStamp& stamp() const = 0;  // of the file that lists what is in it
  // Throws kReadFailed if an open file that has bytes of `file` was changed, or replaced under its name.
  virtual void check_unchanged(i64 file) const = 0;
};

// Those that are open. Thread-safe.
class Containers {
 public:
  virtual ~Containers() = default;
  // The container at a path. Null if there is none, which is not an error whatever the path leads to.
  virtual std::shared_ptr<const Container> at(const std::string& path, const OpenOptions& opening) = 0;
};

// A path that leads into a container.
struct PlaceInside {
  std::shared_ptr<const Container> container;
  std::string name;  // in it; "": the container itself
};
// Nothing if no part of the path is a container.
std::optional<PlaceInside> find_inside(const std::string& path, const OpenOptions& opening);

}  // namespace mckpt::impl
