// Archive: an open archive (io/archive/archive_index.h), a container (io/file/container.h) whose files are in
// HDF5 files: "ckpt.h5/config.json" is a file in the archive ckpt.h5, and the folder "ckpt" with an
// archive.h5 has the files of that archive, whose other parts are beside it.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "io/archive/archive_index.h"
#include "io/file/container.h"
#include "io/file/folder.h"
#include "io/file/open_options.h"

namespace mckpt::impl {

// Const functions are thread-safe. Parts are opened when they are first read.
class Archive final : public Container {
 public:
  // Throws kBadHdf5 for a damaged index. pre: the file begins as an archive.
  Archive(InputFile first, std::string folder, const OpenOptions& opening);

  const ArchiveIndex& index() const { return index_; }
  const IndexPlace& place() const { return place_; }
  std::span<const ArchiveIndex::Row> rows(i64 file) const;
  // An HDF5 file of the archive. Throws kNotFound, kReadFailed for one of another size.
  std::shared_ptr<const InputFile> part(i64 number) const;

  const FileStamp& stamp() const override { return stamp_; }
  i64 find(std::string_view name) const override;
  i64 file_bytes(i64 file) const override { return index_.files[file].bytes; }
  bool has_folder(std::string_view name) const override;
  std::vector<FolderEntry> entries(std::string_view folder) const override;
  void read(i64 file, i64 offset, std::span<u8> to) const override;
  void check_unchanged(i64 file) const override;

 private:
  static constexpr std::size_t kMostOpen = 128;

  ArchiveIndex index_;
  IndexPlace place_;
  FileStamp stamp_;
  std::string folder_;  // where the parts are
  OpenOptions opening_;
  std::vector<std::size_t> first_row_;  // by file
  std::map<std::string, i64, std::less<>> names_;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const InputFile>> parts_;
  mutable std::list<i64> open_;  // the one opened last is in front
};

// The archive at a path: a file with an index, or a folder with such a file. Null if there is none, which is
// not an error whatever the path leads to.
std::shared_ptr<const Archive> open_archive(const std::string& path, const OpenOptions& opening);

// A path that leads into an archive. Nothing if no part of it is one.
struct ArchivePlace {
  std::shared_ptr<const Archive> archive;
  std::string name;  // in it; "": the archive itself
};
std::optional<ArchivePlace> find_in_archive(const std::string& path, const OpenOptions& opening);

}  // namespace mckpt::impl
