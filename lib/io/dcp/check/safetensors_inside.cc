// Looks at the first bytes of records that are too small to be archives.
#include "io/dcp/check/safetensors_inside.h"

#include "core/base/error.h"
#include "core/items/shape.h"
#include "io/dcp/metadata/metadata.h"
#include "io/file/bytes.h"
#include "io/file/folder.h"

namespace mckpt::impl {
namespace {

constexpr i64 kHead = 9;                     // the length of the header, and its first byte
constexpr u64 kMostHeader = u64{100} << 20;  // as the library of safetensors reads

bool begins_as_safetensors(const Folder& folder, const std::string& file, i64 offset) {
  try {
    std::vector<u8> head = folder.open_file(file).read(offset, kHead);
    u64 header_bytes = load_le<u64>(head.data());
    return header_bytes >= 2 && header_bytes <= kMostHeader && head[8] == '{';
  } catch (const Error&) {
    return false;  // a file that is missing or cut short is reported elsewhere
  }
}

}  // namespace

// An archive has its tensor's bytes and more, unless it is compressed.
bool is_safetensors_inside(const DcpMetadata& m, const Folder& folder) {
  for (i64 t = 0; t < m.tensor_count(); t++) {
    std::size_t rank = m.dims[t].size();
    for (std::size_t c = 0; c < m.records[t].size(); c++) {
      const DcpRecord& r = m.records[t][c];
      if (r.file < 0 || r.packing >= 0 || r.bytes <= 0) continue;
      std::span<const i64> box = m.sizes[t].subspan(c * rank, rank);
      if (r.bytes != dtype_bytes(m.dtypes[t], checked_items(box))) continue;
      if (begins_as_safetensors(folder, m.files[r.file], r.offset)) return true;
    }
  }
  return false;
}

}  // namespace mckpt::impl
