// Opens the files of a store when they are needed, through the folder of the checkpoint so that no name leads
// out of it (io/file/folder.h), and checks that the size is still the one that the store found.
#include "io/store/store_files.h"
#include "core/base/error.h"
#include "io/file/folder.h"
#include "io/file/source_stamps.h"
#include "io/store/store.h"

#include <algorithm>

namespace mckpt::impl {

namespace {

// Throws kReadFailed if the file is no longer the one that was opened. A path into a container is not one of
// the system: the files that the container is made of are among those that were noted.
void look_again(const InputFile& file, const OpenOptions& opening) {
  if (!opening.stamps) return;
  file.fd() < 0 ? opening.stamps->check_unchanged() : check_stamp(file.path(), file.stamp());
}

}  // namespace

StoreFiles::StoreFiles(const Store& store, For use)
    : store_(store), look_again_(use == For::kLong), files_(store.files().size()) {
  bool is_folder = false;
  for (const StoreFile& f : store.files()) is_folder |= !f.path.empty();
  if (is_folder) folder_ = std::make_unique<const Folder>(store.root(), store.opening());
}

StoreFiles::~StoreFiles() = default;

std::shared_ptr<const InputFile> StoreFiles::open(i32 file) const {
  std::lock_guard lock(mutex_);
  std::shared_ptr<const InputFile>& slot = files_[file];
  if (slot && look_again_) look_again(*slot, store_.opening());
  if (slot) return slot;
  const StoreFile& known = store_.files()[file];
  auto opened = std::make_shared<const InputFile>(
      known.path.empty() ? InputFile(store_.root(), store_.opening()) : folder_->open_file(known.path));
  if (opened->size() != known.bytes)
    throw Error(Code::kReadFailed, "the file was changed since it was looked at")
        .file(opened->path())
        .expected(cat(known.bytes, " bytes"))
        .found(cat(opened->size(), " bytes"));
  if (open_.size() == kMostOpen) {
    files_[open_.back()].reset();
    open_.pop_back();
  }
  open_.push_front(file);
  return slot = std::move(opened);
}

StoreBytes::StoreBytes(const Store& store) : files_(store) {
  for (std::size_t f = 0; f < store.files().size(); f++)
    bytes_.emplace_back(files_, static_cast<i32>(f), std::max<i64>(store.files()[f].bytes, 0));
}

}  // namespace mckpt::impl
