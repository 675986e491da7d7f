// Plans a copy of whole tensors: a tensor that is one stretch of a file is a region of that file; for any
// other tensor the job has a source of its own, which reads through a TensorReader. Such sources are numbered
// after the files of the store:
//
//   a store of 2 files, in which tensors 3 and 8 are not in one stretch:
//   source 0: file 0      source 1: file 1      source 2: tensor 3      source 3: tensor 8
//
// A TensorReader belongs to one thread at a time, so readers are taken from a list and put back.
#include "io/copy/tensor_copy.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "io/file/file.h"
#include "io/store/store.h"
#include "io/store/unrounded.h"
#include "io/values/computed_bytes.h"

namespace mckpt::impl {

namespace {

// How many bytes are read to compute the tensor; 0 if it is not computed.
i64 bytes_read(const Store& store, i64 tensor) {
  i64 bytes = 0;
  for (i64 c = 0; c < store.chunk_count(tensor); c++) {
    const ChunkData data = store.resolve(tensor, c);
    if (const auto* made = dynamic_cast<const ComputedBytes*>(data.unpacked.get()))
      bytes += made->bytes_read();
  }
  return bytes;
}

}  // namespace

// The row-major, little-endian bytes of a tensor that no file stores in this form.
class TensorCopy::TensorBytes final : public ByteSource {
 public:
  TensorBytes(const TensorCopy& copy, i64 tensor, i64 size, i64 item_bytes)
      : ByteSource(size), copy_(copy), tensor_(tensor), item_bytes_(item_bytes) {}

 private:
  void read_inside(i64 offset, std::span<u8> to) const override {
    std::unique_ptr<TensorReader> reader = copy_.take_reader(tensor_);
    reader->read(tensor_, offset / item_bytes_, (offset + static_cast<i64>(to.size())) / item_bytes_,
                 [&](std::span<const u8> bytes, i64 at) {
                   std::memcpy(to.data() + (at - offset), bytes.data(), bytes.size());
                 });
    std::lock_guard lock(copy_.mutex_);
    copy_.idle_.emplace_back(tensor_, std::move(reader));
  }

  const TensorCopy& copy_;
  i64 tensor_, item_bytes_;
};

TensorCopy::TensorCopy(const Store& store, std::vector<Place> places, std::string_view behind)
    : store_(store), files_(store), places_(std::move(places)), behind_(behind), crc32s_(places_.size()) {
  TensorReader reader(store, files_.files());
  for (std::size_t p = 0; p < places_.size(); p++) {
    try {
      check_cast(cast_of(places_[p]));
    } catch (Error& e) {
      throw e.default_tensor(store.name(places_[p].tensor));
    }
    i64 tensor = places_[p].tensor, size = TensorReader::tensor_bytes(store, tensor);
    int bits = dtype_info(store.dtype(tensor)).bits;
    // Elements smaller than a byte are copied as the bytes that they fill.
    i64 item_bytes = bits % 8 == 0 ? bits / 8 : 1;
    Region source{.items = size / item_bytes,
                  .item_bytes = static_cast<i32>(item_bytes),
                  .tensor = static_cast<i32>(p)};
    read_.push_back(0);
    if (read_type(places_[p]) != store.dtype(tensor)) {
      ChunkData data = store.unrounded()->resolve_unrounded(tensor, 0);
      source.item_bytes = static_cast<i32>(dtype_bytes(data.dtype, 1));
      source.file = static_cast<i32>(store.files().size() + combined_.size());
      source.offset = data.offset;
      combined_.push_back(std::move(data.unpacked));
    } else if (std::optional<TensorReader::Stretch> stretch = reader.stretch(tensor)) {
      source.file = stretch->file;
      source.offset = stretch->offset;
    } else {
      source.file = static_cast<i32>(store.files().size() + combined_.size());
      combined_.push_back(std::make_unique<TensorBytes>(*this, tensor, size, item_bytes));
      read_.back() = bytes_read(store, tensor);
    }
    sources_.push_back(source);
  }
}

TensorCopy::~TensorCopy() = default;

void TensorCopy::prepare(int threads, i64 memory_bytes) const {
  std::lock_guard lock(mutex_);
  strided_bytes_ = std::clamp<i64>(memory_bytes / threads / 2, 1 << 20, TensorReader::kStridedBytes);
}

CopyTask TensorCopy::task(i64 index) const {
  const Place& place = places_[index];
  const Region& source = sources_[index];
  Region destination = source;
  destination.file = place.file;
  destination.offset = place.offset;
  CopyTask task{Plan(this), cast_of(place)};
  if (!task.cast.identity()) destination.item_bytes = static_cast<i32>(dtype_bytes(task.cast.to, 1));
  task.plan.add_source(source);
  i32 to = task.plan.add_destination(destination);
  if (source.items > 0) task.plan.add(to, {.length = source.items});
  task.plan.finish();
  return task;
}

// Values that a view computes are read before they are rounded, where another type is wanted.
DType TensorCopy::read_type(const Place& place) const {
  const DType stored = store_.dtype(place.tensor);
  const UnroundedValues* values = store_.unrounded();
  const bool unrounded = values && place.as && *place.as != stored && store_.chunk_count(place.tensor) == 1 &&
                         values->is_rounded(place.tensor) &&
                         values->resolve_unrounded(place.tensor, 0).strides.empty();
  return unrounded ? DType::kF32 : stored;
}

ItemCast TensorCopy::cast_of(const Place& place) const {
  const DType from = read_type(place), to = place.as.value_or(from);
  // The bytes of elements that are smaller have no item of their own to count.
  if (from == to && dtype_info(from).bits % 8 != 0) return no_cast(DType::kU8);
  return {.from = from, .via = from, .to = to};
}

i64 TensorCopy::task_bytes(i64 index) const {
  const Region& source = sources_[index];
  return source.items * source.item_bytes;
}

const ByteSource& TensorCopy::source(i32 file) const {
  std::size_t at = static_cast<std::size_t>(file), files = store_.files().size();
  return at < files ? files_[file] : *combined_[at - files];
}

void TensorCopy::write_tail(const Region& region, u32 crc32, std::span<u8> to) const {
  crc32s_[region.tensor] = crc32;
  std::copy(behind_.begin(), behind_.end(), to.begin());
}

std::unique_ptr<TensorReader> TensorCopy::take_reader(i64 tensor) const {
  std::lock_guard lock(mutex_);
  if (idle_.empty()) return std::make_unique<TensorReader>(store_, files_.files(), strided_bytes_);
  auto it =
      std::find_if(idle_.begin(), idle_.end(), [&](const auto& entry) { return entry.first == tensor; });
  if (it == idle_.end()) it--;
  std::unique_ptr<TensorReader> reader = std::move(it->second);
  idle_.erase(it);
  return reader;
}

}  // namespace mckpt::impl
