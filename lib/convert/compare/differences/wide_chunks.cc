// Made files cast what they are asked for while they are read; none of it is kept.
#include "convert/compare/differences/wide_chunks.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "core/base/error.h"
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

// Marks the chunks of one record. Chunks that cannot be found are reported by the comparison; items of less
// than a byte are not told apart.
void mark_shared(const Store& store, const StoreChunks& chunks, std::span<const i64> record,
                 std::vector<bool>& out) {
  struct Extent {
    i32 file;
    i64 begin, end, chunk;
  };
  std::vector<Extent> extents;
  for (i64 c : record) try {
      const StoreChunks::Entry e = chunks.entry(c);
      const ChunkData data = store.resolve(e.tensor, e.chunk);
      if (!data.unpacked && dtype_info(data.dtype).bits % 8 == 0)
        extents.push_back(
            {data.file, data.offset, data.offset + dtype_bytes(data.dtype, chunks.items(c)), c});
    } catch (const Error&) {
      continue;
    }
  std::ranges::sort(extents, {}, [](const Extent& e) { return std::tuple(e.file, e.begin, e.chunk); });
  i64 reach = 0;
  for (std::size_t i = 0; i < extents.size(); i++) {
    if (i > 0 && extents[i].file != extents[i - 1].file) reach = 0;
    if (extents[i].begin < reach) out[static_cast<std::size_t>(extents[i].chunk)] = true;
    reach = std::max(reach, extents[i].end);
  }
}

}  // namespace

std::vector<bool> shared_chunks(const Store& store, const StoreChunks& chunks) {
  std::vector<bool> out(static_cast<std::size_t>(chunks.size()));
  struct Record {
    i32 file;
    i64 begin, end, chunk;
  };
  std::vector<Record> records;
  records.reserve(static_cast<std::size_t>(chunks.size()));
  for (i64 c = 0; c < chunks.size(); c++) {
    const StoreChunks::Entry e = chunks.entry(c);
    const Chunk chunk = store.chunk(e.tensor, e.chunk);
    if (chunk.file >= 0 && chunk.record_offset >= 0)
      records.push_back({chunk.file, chunk.record_offset, chunk.record_offset + chunk.record_bytes, c});
  }
  std::ranges::sort(records, {}, [](const Record& r) { return std::tuple(r.file, r.begin, r.chunk); });
  std::vector<i64> sharing;  // records that overlap each other, or others between them
  for (std::size_t at = 0; at < records.size();) {
    const Record& first = records[at];
    sharing.clear();
    bool several = false;
    for (i64 reach = first.end; at < records.size() && records[at].file == first.file &&
                                (records[at].begin < reach || sharing.empty());
         at++) {
      sharing.push_back(records[at].chunk);
      several |= chunks.key(records[at].chunk) != chunks.key(first.chunk);
      reach = std::max(reach, records[at].end);
    }
    if (several) mark_shared(store, chunks, sharing, out);
  }
  return out;
}

WideChunks::WideChunks(const Store& store, const StoreChunks& all, const std::vector<bool>& apart,
                       const std::function<DType(i32 key)>& type,
                       const std::function<std::optional<i64>(i32 key)>& rows)
    : StoreChunks(store), files_(store), real_(std::ssize(store.files())) {
  types_.reserve(static_cast<std::size_t>(all.size()));
  for (i64 c = 0; c < all.size(); c++) {
    const Box whole = all.box(c);
    const std::optional<i64> most = rows ? rows(all.key(c)) : std::nullopt;
    if (most && whole.offsets[0] >= *most) continue;
    if (most && whole.offsets[0] + whole.sizes[0] > *most) {
      std::vector<i64>& sizes = cut_[std::ssize(types_)];
      sizes.assign(whole.sizes.begin(), whole.sizes.end());
      sizes[0] = *most - whole.offsets[0];
    }
    add(all.entry(c));
    types_.push_back(type(all.key(c)));
    apart_.push_back(apart[static_cast<std::size_t>(c)]);
  }
}

ChunkList::Box WideChunks::box(i64 c) const {
  Box box = StoreChunks::box(c);
  if (auto cut = cut_.find(c); cut != cut_.end()) box.sizes = cut->second;
  return box;
}

ChunkList::Place WideChunks::place(i64 c) const {
  const Entry e = entry(c);
  ChunkData data = store().resolve(e.tensor, e.chunk);
  if (data.dtype == dtype(c) && !data.unpacked && !apart_[static_cast<std::size_t>(c)])
    return StoreChunks::place(c);
  data.unpacked = nullptr;
  check_plain(store(), e.tensor, store().chunk(e.tensor, e.chunk), data);
  return {static_cast<i32>(real_ + c), 0, dtype(c)};
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
