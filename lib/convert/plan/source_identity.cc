// The modification time is one that programs set as they like: a copy with `cp -p`, an archive or rsync gives
// two saves the same. The change time of the inode cannot be set, so it counts too. It also changes where the
// contents do not (chmod, a new name, another link): then a resumed run is refused, rather than that it mixes
// two sources.
#include "convert/plan/source_identity.h"

#include "convert/own/names.h"
#include "core/base/text.h"
#include "hf/adapter/adapted_store.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/sums/sha256.h"

namespace mckpt::impl {
namespace {

// Which bytes of which file are whose. Some formats say so in a file that is none of the store's: with
// another .metadata the same files are another checkpoint.
std::string table_digest(const Store& store) {
  Sha256 sha;
  auto add = [&](std::string_view text) {
    sha.update({reinterpret_cast<const u8*>(text.data()), text.size()});
  };
  std::string line;
  auto add_numbers = [&](std::span<const i64> numbers) {
    for (i64 n : numbers) line += cat(n, " ");
    line += ';';
  };
  for (i64 t = 0; t < store.tensor_count(); t++) {
    line = cat(store.name(t), " ", static_cast<int>(store.dtype(t)), ";");
    add_numbers(store.dims(t));
    for (i64 c = 0; c < store.chunk_count(t); c++) {
      const Chunk chunk = store.chunk(t, c);
      add_numbers(chunk.offsets), add_numbers(chunk.sizes);
      line += cat(chunk.file, " ", chunk.record_offset, " ", chunk.record_bytes, ";");
    }
    add(cat(line, "\n"));
  }
  for (const Object& o : store.objects())
    add(cat(o.name, " ", o.file, " ", o.record_offset, " ", o.record_bytes, "\n"));
  return sha.hex_digest();
}

}  // namespace

SourceIdentity source_identity(const Store& store) {
  SourceIdentity out;
  StoreFiles files(store);
  for (std::size_t f = 0; f < store.files().size(); f++) {
    const FileStamp& stamp = files.open(static_cast<i32>(f))->stamp();
    out.files += cat(store.files()[f].path, " ", stamp.bytes, " ", stamp.modified_ns, "\n");
    out.times += cat(store.files()[f].path, " ", stamp.changed_ns, "\n");
  }
  out.files += cat("table ", table_digest(store), "\n");
  if (const AdaptedStore* view = adapted_view(store)) {
    const SourceIdentity adapter = source_identity(view->adapter());
    out.files += cat("with ", adapter.files, view->config_text(), "\n");
    out.times += cat("with ", adapter.times);
  }
  for (const auto& [name, value] : store.facts())
    if (name == kModelDictFact) out.files += cat("dict ", value, "\n");
  return out;
}

}  // namespace mckpt::impl
