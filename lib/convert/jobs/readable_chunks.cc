// A reader of a chunk at strides keeps a box of the chunk in memory, so readers are kept between reads: the
// next read of the chunk usually finds its items there. At most as many are kept as there are threads.
#include "convert/jobs/readable_chunks.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/store/store.h"
#include "io/values/chunk_reader.h"
#include "io/values/strided.h"

namespace mckpt::impl {
namespace {

bool is_row_by_row(const Chunk& chunk, const ChunkData& data) {
  return (data.strides.empty() || is_row_major(chunk.sizes, data.strides)) && !data.big_endian;
}

}  // namespace

// The items of one chunk in row-major order.
class ReadableChunks::ChunkBytes final : public ByteSource {
 public:
  ChunkBytes(const ReadableChunks& chunks, i32 chunk, i64 size, i64 item_bytes)
      : ByteSource(size), chunks_(chunks), chunk_(chunk), item_bytes_(item_bytes) {}

 private:
  void read_inside(i64 offset, std::span<u8> to) const override;

  const ReadableChunks& chunks_;
  i32 chunk_;
  i64 item_bytes_;
};

struct ReadableChunks::Reader {
  i32 chunk;
  Chunk box;
  ChunkReader reader;

  Reader(i32 number, const Chunk& chunk_box, std::shared_ptr<const ByteSource> file, ChunkData data,
         i64 memory)
      : chunk(number), box(chunk_box), reader(std::move(file), std::move(data), box.sizes, memory) {}
};

// pre: whole items; the engine reads no others.
void ReadableChunks::ChunkBytes::read_inside(i64 offset, std::span<u8> to) const {
  std::unique_ptr<Reader> reader = chunks_.take_reader(chunk_);
  reader->reader.read(offset / item_bytes_, to);
  chunks_.put_back(std::move(reader));
}

ReadableChunks::ReadableChunks(const Store& store, std::span<const std::pair<i32, i32>> tensors,
                               std::vector<bool> unrounded)
    : StoreChunks(store),
      files_(store),
      file_count_(static_cast<i32>(store.files().size())),
      unrounded_(std::move(unrounded)) {
  for (auto [tensor, key] : tensors) add(tensor, key);
}

ReadableChunks::~ReadableChunks() = default;

void ReadableChunks::prepare(ReadMemory memory) const {
  std::lock_guard lock(mutex_);
  memory_ = memory;
}

DType ReadableChunks::dtype(i64 c) const {
  return is_unrounded(entry(c).tensor) ? DType::kF32 : StoreChunks::dtype(c);
}

ChunkData ReadableChunks::resolved(const Entry& e) const {
  return is_unrounded(e.tensor) ? store().unrounded()->resolve_unrounded(e.tensor, e.chunk)
                                : store().resolve(e.tensor, e.chunk);
}

ChunkList::Place ReadableChunks::place(i64 c) const {
  Entry e = entry(c);
  Chunk chunk = store().chunk(e.tensor, e.chunk);
  ChunkData data = resolved(e);
  bool row_by_row = is_row_by_row(chunk, data);
  Place out{data.file, data.offset, data.dtype};
  if (row_by_row && !data.unpacked) {
    add_sums(std::move(data), out.sums);
    return out;
  }
  i32 number = static_cast<i32>(c);
  out.file = file_count_ + number;
  if (!row_by_row) out.data_offset = 0;
  std::lock_guard lock(mutex_);
  std::shared_ptr<const ByteSource>& bytes = apart_[number];
  if (!bytes && row_by_row) bytes = std::move(data.unpacked);
  if (!bytes)
    bytes = std::make_shared<ChunkBytes>(*this, number, dtype_bytes(data.dtype, items(c)),
                                         dtype_bytes(data.dtype, 1));
  // The engine does not see the bytes of the records: their sums are compared after the copy.
  add_sums(std::move(data), out.sums);
  return out;
}

const ByteSource& ReadableChunks::source(i32 file) const {
  if (file < file_count_) return files_[file];
  std::lock_guard lock(mutex_);
  return *apart_.at(file - file_count_);
}

std::unique_ptr<ReadableChunks::Reader> ReadableChunks::take_reader(i32 chunk) const {
  i64 memory = 0;
  {
    std::lock_guard lock(mutex_);
    auto at = std::ranges::find_if(idle_, [&](const auto& reader) { return reader->chunk == chunk; });
    if (at != idle_.end()) {
      std::unique_ptr<Reader> reader = std::move(*at);
      idle_.erase(at);
      return reader;
    }
    if (std::ssize(idle_) >= memory_.threads) idle_.erase(idle_.begin());
    memory = memory_.bytes;
  }
  Entry e = entry(chunk);
  ChunkData data = resolved(e);
  std::shared_ptr<const ByteSource> file = data.unpacked;
  if (!file) file = files_.files().open(data.file);
  return std::make_unique<Reader>(chunk, store().chunk(e.tensor, e.chunk), std::move(file), std::move(data),
                                  memory);
}

void ReadableChunks::put_back(std::unique_ptr<Reader> reader) const {
  std::lock_guard lock(mutex_);
  if (std::ssize(idle_) < memory_.threads) idle_.push_back(std::move(reader));
}

}  // namespace mckpt::impl
