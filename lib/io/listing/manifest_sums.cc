// A file of the store has an entry of the manifest if both path and size fit.
#include "io/listing/manifest_sums.h"

#include <algorithm>
#include <string>

#include "io/file/folder.h"
#include "io/store/store.h"

namespace mckpt::impl {

// A store is a folder, whose files are listed by their paths, or one file, which the folder that it is in
// lists.
ManifestSums::ManifestSums(const Store& store) : files_(store.files().size()) {
  ListedPlace place = listed_place(store.root(), store.opening());
  if (!has_manifest(place.folder, store.opening())) return;
  manifest_ = read_manifest(Folder(place.folder, store.opening()));
  if (!manifest_) return;
  for (std::size_t f = 0; f < files_.size(); f++) {
    const ManifestFile* listed = manifest_->find(place.name.empty() ? store.files()[f].path : place.name);
    if (listed && listed->bytes == store.files()[f].bytes) files_[f] = listed;
  }
}

const SummedStretch* ManifestSums::find(i32 file, i64 offset) const {
  std::size_t f = static_cast<std::size_t>(file);
  const ManifestFile* listed = f < files_.size() ? files_[f] : nullptr;
  if (!listed) return nullptr;
  auto at = std::ranges::lower_bound(listed->sums, offset, {}, &SummedStretch::offset);
  return at != listed->sums.end() && at->offset == offset ? &*at : nullptr;
}

}  // namespace mckpt::impl
