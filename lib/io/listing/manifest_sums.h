// The sums of a manifest, found by the files of a store.
#pragma once

#include <optional>
#include <vector>

#include "core/base/int.h"
#include "io/listing/manifest.h"

namespace mckpt::impl {

class Store;

// The sums that the manifest of a store's folder has for the store's files, by file and offset. Entries for
// files of another size are not used. Not to be copied: it points into itself.
class ManifestSums {
 public:
  ManifestSums() = default;  // knows no sums
  // Throws what read_manifest() does.
  explicit ManifestSums(const Store& store);

  // The sum of the data that begin at this offset; null: none is known.
  const SummedStretch* find(i32 file, i64 offset) const;

 private:
  std::optional<Manifest> manifest_;
  std::vector<const ManifestFile*> files_;  // by file of the store; null: it is not listed
};

}  // namespace mckpt::impl
