// The identity uses the modification time, which a copy with `cp -p` keeps, where checksums can prove that
// the data are the same. Where a format has no checksums, the inode's change time counts as well,
// which nothing can set back.
#include "convert/plan/source_identity.h"

#include "convert/own/names.h"
#include "core/base/text.h"
#include "hf/adapter/adapted_store.h"
#include "io/store/store.h"
#include "io/store/store_files.h"

namespace mckpt::impl {

std::string source_identity(const Store& store) {
  std::string out;
  // A resumed conversion compares what was read before with the checksums of the source, if it has some.
  const bool has_sums = store.driver().has_sums;
  StoreFiles files(store);
  for (std::size_t f = 0; f < store.files().size(); f++) {
    const FileStamp& stamp = files.open(static_cast<i32>(f))->stamp();
    out += cat(store.files()[f].path, " ", stamp.bytes, " ", stamp.modified_ns, "\n");
    if (!has_sums) out += cat(stamp.changed_ns, "\n");
  }
  if (const AdaptedStore* view = adapted_view(store))
    out += cat("with ", source_identity(view->adapter()), view->config_text(), "\n");
  for (const auto& [name, value] : store.facts())
    if (name == kModelDictFact) out += cat("dict ", value, "\n");
  return out;
}

}  // namespace mckpt::impl
