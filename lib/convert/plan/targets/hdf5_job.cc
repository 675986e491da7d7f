// Sources are numbered: the files of the store and the chunks that are read apart, as ReadableChunks numbers
// them, then the files of the archive that the store does not have. The tensor of a region is the number of a
// chunk, or, behind them, of a row.
#include "convert/plan/targets/hdf5_job.h"

#include <algorithm>
#include <tuple>

#include "core/base/error.h"
#include "core/items/dtype.h"
#include "io/hdf5/archive_layout.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

// Rows between chunks are a kilobyte each; so many are one task.
constexpr i64 kMostRows = 256, kMostRowBytes = 1 << 20;

// Elements smaller than a byte are copied as the bytes that they fill.
i32 copied_bytes(DType dtype) { return std::max(1, dtype_info(dtype).bits / 8); }

}  // namespace

// A file that is opened for each read: there are few, and most are small.
class ArchiveJob::SideSource final : public ByteSource {
 public:
  SideSource(const Folder& folder, const std::string& name, i64 bytes)
      : ByteSource(bytes), folder_(folder), name_(name) {}

 private:
  void read_inside(i64 offset, std::span<u8> to) const override { folder_.open_file(name_).read(offset, to); }

  const Folder& folder_;
  const std::string& name_;
};

void add_contents(ArchiveContents& to, const Store& store, const ArchivedFiles& files,
                  const ReadableChunks& chunks) {
  for (const ArchivedFile& f : files.files) to.files.push_back({f.name, f.bytes});
  to.opened = files.opened;
  for (i64 t = 0; t < store.tensor_count(); t++) {
    std::span<const i64> dims = store.dims(t);
    to.tensors.push_back({std::string(store.name(t)), store.dtype(t), {dims.begin(), dims.end()}});
  }
  const std::vector<i64> by_store_file = files.by_store_file(store);
  for (i64 c = 0; c < chunks.size(); c++) {
    ChunkList::Place place = chunks.place(c);
    ChunkList::Box box = chunks.box(c);
    ArchiveChunk chunk{.tensor = chunks.key(c),
                       .offsets = {box.offsets.begin(), box.offsets.end()},
                       .sizes = {box.sizes.begin(), box.sizes.end()},
                       .bytes = dtype_bytes(place.dtype, chunks.items(c))};
    bool stored = place.file < std::ssize(by_store_file);
    i32 file = stored ? place.file : store.chunk(chunks.entry(c).tensor, chunks.entry(c).chunk).file;
    chunk.file = file < 0 ? 0 : by_store_file[file];
    if (stored) chunk.begin = place.data_offset;
    to.chunks.push_back(std::move(chunk));
  }
}

ArchiveJob::ArchiveJob(const Store& store, const ArchivedFiles& files, const ReadableChunks& chunks,
                       const ArchiveLayout& layout)
    : store_(store), files_(files), chunks_(chunks), layout_(layout), side_(files.files.size()) {
  for (std::size_t f = 0; f < side_.size(); f++) {
    const ArchivedFile& file = files.files[f];
    if (file.store_file < 0)
      side_[f] = std::make_unique<const SideSource>(*files.folders[file.folder], file.in_folder, file.bytes);
  }
  list_tasks();
}

ArchiveJob::~ArchiveJob() = default;

void ArchiveJob::prepare(int threads, i64 memory_bytes) const {
  chunks_.prepare(read_memory(threads, memory_bytes));
}

// In the order of the result, so that neighbours are written together.
void ArchiveJob::list_tasks() {
  for (i64 c = 0; c < chunks_.size(); c++) {
    const ArchiveChunk& chunk = layout_.chunks()[c];
    tasks_.push_back({c, 0, 0, chunk.part, chunk.offset, chunk.bytes});
  }
  const std::vector<ArchiveIndex::Row>& rows = layout_.rows();
  Task between;
  auto end_task = [&] {
    if (between.bytes > 0) tasks_.push_back(between);
    between = {};
  };
  for (i64 r = 0; r < std::ssize(rows); r++) {
    if (layout_.chunk_of_row(r) >= 0) continue;
    bool follows = between.bytes > 0 && rows[between.first].file == rows[r].file &&
                   between.bytes < kMostRowBytes && r - between.first < kMostRows;
    if (!follows) {
      end_task();
      between.first = r, between.part = rows[r].part, between.offset = rows[r].offset;
    }
    between.end = r + 1;
    between.bytes += rows[r].bytes;
  }
  end_task();
  std::ranges::sort(tasks_, {}, [](const Task& t) { return std::tuple(t.part, t.offset); });
}

i32 ArchiveJob::source_of(i64 file) const {
  i32 own = files_.files[file].store_file;
  if (own >= 0) return own;
  return static_cast<i32>(std::ssize(store_.files()) + chunks_.size() + file);
}

CopyTask ArchiveJob::task(i64 index) const {
  const Task& task = tasks_[index];
  return task.chunk >= 0 ? chunk_task(task) : rows_task(task);
}

CopyTask ArchiveJob::chunk_task(const Task& task) const {
  ChunkList::Place place = chunks_.place(task.chunk);
  i32 item_bytes = copied_bytes(place.dtype), tensor = static_cast<i32>(task.chunk);
  i64 items = task.bytes / item_bytes;
  CopyTask out{Plan(this), no_cast(place.dtype)};
  i32 source = out.plan.add_source({place.file, place.data_offset, items, item_bytes, tensor});
  i32 to = out.plan.add_destination({static_cast<i32>(task.part), task.offset, items, item_bytes, tensor});
  out.plan.add(to, {.slot = source, .length = items});
  out.plan.finish();
  out.sums = std::move(place.sums);
  return out;
}

CopyTask ArchiveJob::rows_task(const Task& task) const {
  CopyTask out{Plan(this), no_cast(DType::kU8)};
  for (i64 r = task.first; r < task.end; r++) {
    if (layout_.chunk_of_row(r) >= 0) continue;
    const ArchiveIndex::Row& row = layout_.rows()[r];
    i32 tensor = static_cast<i32>(chunks_.size() + r);
    i32 source = out.plan.add_source({source_of(row.file), row.begin, row.bytes, 1, tensor});
    i32 to = out.plan.add_destination({static_cast<i32>(row.part), row.offset, row.bytes, 1, tensor});
    out.plan.add(to, {.slot = source, .length = row.bytes});
  }
  out.plan.finish();
  return out;
}

i32 ArchiveJob::source_tensor(const Region& region) const {
  return region.tensor < chunks_.size() ? chunks_.key(region.tensor) : -1;
}

std::string ArchiveJob::tensor_of(const Region& region) const {
  i32 tensor = source_tensor(region);
  return tensor < 0 ? std::string() : std::string(store_.name(tensor));
}

const ByteSource& ArchiveJob::source(i32 file) const {
  i64 side = file - std::ssize(store_.files()) - chunks_.size();
  return side < 0 ? chunks_.source(file) : *side_[side];
}

}  // namespace mckpt::impl
