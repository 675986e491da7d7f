// What an interrupted conversion remembers of its source.
#include "convert/source/identity.h"

#include "core/base/text.h"
#include "io/store/store.h"
#include "io/store/store_files.h"

namespace mckpt::impl {

std::string source_identity(const Store& store) {
  std::string out;
  // A resumed conversion judges what was read before by the sums of the source; safetensors have none.
  bool has_sums = !store.format().starts_with("safetensors");
  StoreFiles files(store);
  for (std::size_t f = 0; f < store.files().size(); f++) {
    const FileStamp& stamp = files.open(static_cast<i32>(f))->stamp();
    out += cat(store.files()[f].path, " ", stamp.bytes, " ", stamp.modified_ns, "\n");
    if (!has_sums) out += cat(stamp.changed_ns, "\n");
  }
  return out;
}

}  // namespace mckpt::impl
