// Whether tensor-parallel ranks agree about what they all have: each stores a copy among its own flat parts,
// which no checksum covers, so the items are compared.
#include <algorithm>
#include <cstring>
#include <mutex>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/items/shape.h"
#include "io/file/parallel.h"
#include "io/store/store_files.h"
#include "io/values/tensor_reader.h"
#include "io/zero/store.h"

namespace mckpt::impl {
namespace {

// Compares the copies of one tensor with the items that are read.
class CopyCheck {
 public:
  CopyCheck(const Store& store, const StoreFiles& files)
      : store_(store), files_(files), reader_(store, files) {}

  // The first item that a copy has with another value, and the file of the copy; -1: none.
  struct Difference {
    i64 item = -1;
    i32 file = -1;
  };
  Difference find(i64 tensor) {
    for (i64 c = 0; c < store_.chunk_count(tensor); c++)
      if (const Chunk chunk = store_.chunk(tensor, c); chunk.replica)
        if (const i64 item = compare(tensor, c, chunk); item >= 0) return {item, chunk.file};
    return {};
  }

 private:
  // Stretches of the box that follow each other in the whole tensor as they do in the file.
  i64 compare(i64 tensor, i64 c, const Chunk& chunk) {
    const ChunkData data = store_.resolve(tensor, c);
    if (!data.strides.empty()) return -1;  // a tensor as it was saved, and no part of a flat one
    const std::span<const i64> dims = store_.dims(tensor);
    std::size_t loops = dims.size();
    while (loops > 0 && chunk.sizes[loops - 1] == dims[loops - 1]) loops--;
    if (loops > 0) loops--;
    const i64 each = checked_items(chunk.sizes.subspan(loops)),
              item_bytes = dtype_bytes(store_.dtype(tensor), 1);
    const auto file = files_.open(data.file);
    i64 at = data.offset;
    std::vector<i64> index(loops, 0);
    for (bool more = each > 0; more;) {
      i64 begin = 0;
      for (std::size_t d = 0; d < dims.size(); d++)
        begin = begin * dims[d] + chunk.offsets[d] + (d < loops ? index[d] : 0);
      if (const i64 item = compare(tensor, begin, each, *file, at, data.big_endian ? item_bytes : 1);
          item >= 0)
        return item;
      at += each * item_bytes;
      std::size_t d = loops;
      while (d > 0 && ++index[d - 1] == chunk.sizes[d - 1]) index[--d] = 0;
      more = d > 0;
    }
    return -1;
  }

  i64 compare(i64 tensor, i64 begin, i64 items, const InputFile& file, i64 at, i64 swapped_bytes) {
    const i64 item_bytes = dtype_bytes(store_.dtype(tensor), 1);
    i64 different = -1;
    reader_.read(tensor, begin, begin + items, [&](std::span<const u8> bytes, i64 where) {
      if (different >= 0) return;
      copy_.resize(bytes.size());
      file.read(at + where - begin * item_bytes, copy_);
      for (std::size_t i = 0; swapped_bytes > 1 && i < copy_.size();
           i += static_cast<std::size_t>(swapped_bytes))
        std::reverse(copy_.begin() + i, copy_.begin() + i + swapped_bytes);
      const auto unlike = std::ranges::mismatch(bytes, copy_);
      if (unlike.in1 != bytes.end()) different = (where + (unlike.in1 - bytes.begin())) / item_bytes;
    });
    return different;
  }

  const Store& store_;
  const StoreFiles& files_;
  TensorReader reader_;
  std::vector<u8> copy_;
};

}  // namespace

std::optional<std::vector<Finding>> ZeroStore::check(int threads) const {
  if (!compares_copies_) return std::nullopt;
  const StoreFiles files(*this);
  std::vector<std::optional<Finding>> found(static_cast<std::size_t>(tensor_count()));
  parallel_for(tensor_count(), threads, [&](int, i64 t) {
    if (dtype_info(dtype(t)).bits % 8 != 0) return;
    try {
      const CopyCheck::Difference unlike = CopyCheck(*this, files).find(t);
      if (unlike.item < 0) return;
      found[t] =
          Finding{.code = Code::kBadShards,
                  .tensor = std::string(name(t)),
                  .file = files_[unlike.file].path,
                  .message = cat("tensor-parallel ranks have other values of what they all have, from ",
                                 dims_to_string(item_index(unlike.item, dims(t))), " on"),
                  .help = "DeepSpeed's ds_to_universal.py refuses it too"};
    } catch (const Error& e) {
      if (e.code() != Code::kChunkHole) throw;  // coverage says it
    }
  });
  std::vector<Finding> out;
  for (std::optional<Finding>& f : found)
    if (f) out.push_back(std::move(*f));
  if (out.empty()) return std::nullopt;  // nothing to say of names and objects
  return out;
}

}  // namespace mckpt::impl
