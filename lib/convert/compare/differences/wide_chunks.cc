// Made files cast what they are asked for while they are read; none of it is kept.
#include "convert/compare/differences/wide_chunks.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/items/item_cast.h"
#include "core/items/shape.h"
#include "io/file/file.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kMostKept = 64;

// Items of one type as items of another one. `from` is kept alive by `owned`, or outlives this.
class CastBytes final : public ByteSource {
 public:
  CastBytes(const ByteSource& from, i64 offset, DType stored, DType type, i64 items,
            std::shared_ptr<const ByteSource> owned)
      : ByteSource(dtype_bytes(type, items)),
        from_(from),
        offset_(offset),
        stored_bytes_(dtype_bytes(stored, 1)),
        bytes_(dtype_bytes(type, 1)),
        cast_{stored, type, type},
        owned_(std::move(owned)) {}

 private:
  void read_inside(i64 offset, std::span<u8> to) const override {
    const i64 first = offset / bytes_, end = (offset + std::ssize(to) + bytes_ - 1) / bytes_;
    std::vector<u8> stored(static_cast<std::size_t>((end - first) * stored_bytes_));
    from_.read(offset_ + first * stored_bytes_, stored);
    if (cast_.identity()) return copy(stored, offset - first * bytes_, to);
    std::vector<u8> wide(static_cast<std::size_t>((end - first) * bytes_));
    cast_items(cast_, stored.data(), wide.data(), end - first);
    copy(wide, offset - first * bytes_, to);
  }
  static void copy(const std::vector<u8>& items, i64 skipped, std::span<u8> to) {
    if (!to.empty()) std::memcpy(to.data(), &items[static_cast<std::size_t>(skipped)], to.size());
  }

  const ByteSource& from_;
  i64 offset_, stored_bytes_, bytes_;
  ItemCast cast_;
  std::shared_ptr<const ByteSource> owned_;
};

}  // namespace

WideChunks::WideChunks(const Store& store, const StoreChunks& all, const std::function<DType(i32 key)>& type)
    : StoreChunks(store), files_(store), real_(std::ssize(store.files())) {
  types_.reserve(static_cast<std::size_t>(all.size()));
  for (i64 c = 0; c < all.size(); c++) {
    add(all.entry(c));
    types_.push_back(type(all.key(c)));
  }
}

ChunkList::Place WideChunks::place(i64 c) const {
  const Entry e = entry(c);
  ChunkData data = store().resolve(e.tensor, e.chunk);
  if (data.dtype == dtype(c) && !data.unpacked) return StoreChunks::place(c);
  data.unpacked = nullptr;
  check_plain(store(), e.tensor, store().chunk(e.tensor, e.chunk), data);
  return {static_cast<i32>(real_ + c), 0, dtype(c), std::nullopt};
}

std::shared_ptr<const ByteSource> WideChunks::made(i32 file) const {
  const i64 c = file - real_;
  {
    std::lock_guard lock(mutex_);
    if (auto kept = made_.find(c); kept != made_.end()) return kept->second;
  }
  const Entry e = entry(c);
  const ChunkData data = store().resolve(e.tensor, e.chunk);
  const ByteSource& from = data.unpacked ? *data.unpacked : files_[data.file];
  auto bytes =
      std::make_shared<const CastBytes>(from, data.offset, data.dtype, dtype(c), items(c), data.unpacked);
  std::lock_guard lock(mutex_);
  if (made_.size() >= kMostKept) made_.clear();
  return made_.emplace(c, std::move(bytes)).first->second;
}

TestedBytes::TestedBytes(const Store& there, const ChunkList& chunks)
    : files_(there), real_(std::ssize(there.files())), chunks_(chunks) {}

void TestedBytes::read(i32 file, i64 offset, std::span<u8> to) const {
  file < real_ ? files_[file].read(offset, to) : chunks_.made(file)->read(offset, to);
}

}  // namespace mckpt::impl
