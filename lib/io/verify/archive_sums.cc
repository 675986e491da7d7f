// Each file of the store is looked up in the archive by its path; the rows of its data have the sums.
#include "io/verify/archive_sums.h"

#include "core/base/text.h"
#include "io/archive/archive.h"
#include "io/store/store.h"

namespace mckpt::impl {

std::vector<Checksum> archive_sums(const Store& store) {
  std::vector<Checksum> out;
  std::optional<ArchivePlace> inside = find_in_archive(store.root(), store.opening());
  if (!inside) return out;
  for (i32 f = 0; f < std::ssize(store.files()); f++) {
    const std::string& path = store.files()[f].path;
    bool joined = !inside->name.empty() && !path.empty();
    i64 file = inside->archive->find(cat(inside->name, joined ? "/" : "", path));
    if (file < 0) continue;
    for (const ArchiveIndex::Row& r : inside->archive->rows(file))
      out.push_back({f, r.begin, r.bytes, r.crc32});
  }
  return out;
}

}  // namespace mckpt::impl
