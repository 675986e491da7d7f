// Chooses what to read for a range of values, reads it, and has it decoded.
#include "hf/quantized/value_bytes.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "core/quantized/dequantize.h"
#include "hf/quantized/value_faults.h"
#include "io/file/bytes.h"
#include "io/file/parallel.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

// Bands of all threads together; with the engine's 128 MiB a process stays below 256 MiB.
constexpr i64 kBandsBytes = i64{64} << 20, kMostBandBytes = i64{16} << 20, kLeastBandBytes = i64{1} << 20;

// Where a tensor of the store is: safetensors have each in one stretch of a file. Throws kQuantMisfit for
// pieces.
struct Stored {
  const ByteSource* file = nullptr;
  i64 offset = 0;

  void read(i64 at, std::span<u8> to) const { file->read(offset + at, to); }
};

Stored stored(const Store& store, i64 tensor, const StoreBytes& files) {
  if (tensor < 0 || store.shape(tensor).items() == 0) return {};
  if (store.chunk_count(tensor) != 1)
    throw Error(Code::kQuantMisfit, "a part of a quantised weight is stored in pieces")
        .tensor(store.name(tensor));
  ChunkData data = store.resolve(tensor, 0);
  return {&files[data.file], data.offset};
}

// The parts of one tensor, and the layout with the number that is in the file.
struct Parts {
  QuantLayout layout;
  Stored codes, scales, zero_points;
};

void check_shape(const Store& store, const QuantizedTensor& q, const StoreBytes& files) {
  u8 bytes[16] = {};
  std::span<u8> stored_bytes(bytes, store.dtype(q.shape) == DType::kI64 ? 16 : 8);
  stored(store, q.shape, files).read(0, stored_bytes);
  refuse_other_shape(store, q, stored_bytes);
}

Parts parts_of(const Store& store, const QuantizedTensor& q, const StoreBytes& files) {
  Parts parts{q.layout, stored(store, q.codes, files), stored(store, q.scales, files),
              stored(store, q.zero_points, files)};
  if (q.tensor_scale >= 0) {
    u8 bytes[4];
    stored(store, q.tensor_scale, files).read(0, bytes);
    parts.layout.tensor_scale = std::bit_cast<float>(load_le<u32>(bytes));
  }
  if (q.shape >= 0) check_shape(store, q, files);
  if (q.groups >= 0) {
    std::vector<u8> bytes(static_cast<std::size_t>(dtype_bytes(DType::kI32, q.layout.columns)));
    if (!bytes.empty()) stored(store, q.groups, files).read(0, bytes);
    parts.layout.group_of = groups_of_columns(store, q, bytes);
  }
  return parts;
}

// A buffer of the pool for as long as a read takes.
class Borrowed {
 public:
  explicit Borrowed(ValueMemory& memory) : memory_(memory), buffer_(memory.take()) {}
  ~Borrowed() { memory_.give(std::move(buffer_)); }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  // `bytes` of it; what was in it before is lost.
  std::span<u8> bytes(i64 bytes) {
    if (std::ssize(*buffer_) < bytes) {
      buffer_->clear();
      buffer_->resize(static_cast<std::size_t>(bytes));
    }
    return {buffer_->data(), static_cast<std::size_t>(bytes)};
  }

 private:
  ValueMemory& memory_;
  std::unique_ptr<ValueMemory::Buffer> buffer_;
};

class KeptBytes final : public ByteSource {
 public:
  explicit KeptBytes(std::vector<u8> bytes) : ByteSource(std::ssize(bytes)), bytes_(std::move(bytes)) {}

 private:
  void read_inside(i64 offset, std::span<u8> to) const override {
    std::memcpy(to.data(), bytes_.data() + offset, to.size());
  }

  std::vector<u8> bytes_;
};

// The part that all sources of values share: whole items are decoded, whatever bytes are asked for.
class ValueBytes : public ByteSource {
 public:
  ValueBytes(const QuantizedTensor& tensor, DType dtype, ValueMemory& memory, ValueFaults& faults,
             Parts parts)
      : ByteSource(dtype_bytes(dtype, Shape(tensor.dims).items())),
        tensor_(tensor),
        dtype_(dtype),
        item_bytes_(dtype_bytes(dtype, 1)),
        memory_(memory),
        faults_(faults),
        parts_(std::move(parts)) {}

 protected:
  // Decodes items [first, end) to `out`.
  virtual void decode(i64 first, i64 end, u8* out) const = 0;

  const QuantizedTensor& tensor_;
  DType dtype_;
  i64 item_bytes_;
  ValueMemory& memory_;
  ValueFaults& faults_;
  Parts parts_;

 private:
  void read_inside(i64 offset, std::span<u8> to) const override {
    i64 end = offset + std::ssize(to), first = offset / item_bytes_, last = ceil_div(end, item_bytes_);
    if (offset == end) return;
    if (offset % item_bytes_ == 0 && end % item_bytes_ == 0) return decode(first, last, to.data());
    Borrowed whole(memory_);
    std::span<u8> items = whole.bytes((last - first) * item_bytes_);
    decode(first, last, items.data());
    std::memcpy(to.data(), items.data() + (offset - first * item_bytes_), to.size());
  }
};

// Values in the order of their codes. Codes of more than kStep values are read piece by piece, so that they
// are in the cache when they are decoded.
class OrderedValues final : public ValueBytes {
 public:
  using ValueBytes::ValueBytes;

 private:
  static constexpr i64 kStep = i64{1} << 19;

  void decode(i64 first, i64 end, u8* out) const override {
    for (i64 at = first; at < end; at += kStep)
      decode_step(at, std::min(at + kStep, end), out + (at - first) * item_bytes_);
  }

  void decode_step(i64 first, i64 end, u8* out) const {
    StoredRanges ranges = stored_ranges(parts_.layout, first, end);
    i64 codes_at = 0, scales_at = ceil_div(ranges.codes.bytes(), 64) * 64;
    i64 zeros_at = scales_at + ceil_div(ranges.scales.bytes(), 64) * 64;
    Borrowed buffer(memory_);
    std::span<u8> all = buffer.bytes(zeros_at + ranges.zero_points.bytes());
    auto part = [&](const Stored& from, i64 at, const ByteRange& range) {
      std::span<u8> to = all.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(range.bytes()));
      if (!to.empty()) from.read(range.begin, to);
      return to;
    };
    std::span<u8> codes = part(parts_.codes, codes_at, ranges.codes);
    std::span<u8> scales = part(parts_.scales, scales_at, ranges.scales);
    std::span<u8> zeros = part(parts_.zero_points, zeros_at, ranges.zero_points);
    dequantize_items(parts_.layout, first, end, codes, scales, zeros, dtype_, out);
    std::span<const u8> values(out, static_cast<std::size_t>((end - first) * item_bytes_));
    faults_.look_at(tensor_, parts_.layout, codes, range_of_scales(parts_.layout.scales, scales), dtype_,
                    values);
  }
};

// Values whose rows are the columns of their codes. pre: two codes a byte, blocks of one row.
class TurnedValues final : public ValueBytes {
 public:
  using ValueBytes::ValueBytes;

 private:
  using Band = ValueMemory::Band;
  using Rows = ValueMemory::Rows;

  const QuantLayout& layout() const { return parts_.layout; }

  // Rows that are decoded together: the rows of one vector of codes.
  static constexpr i64 kTogether = 16;

  // Rows of values are columns of codes: whole rows are decoded in place, and of rows that are cut, or are
  // only some of those that are decoded together, the rest is kept.
  void decode(i64 first, i64 end, u8* out) const override {
    const i64 width = layout().rows, height = layout().columns;
    for (i64 items; first < end; first += items, out += items * item_bytes_) {
      i64 matrix = first / width / height, begin = matrix * height * width;
      i64 row = (first - begin) / width / kTogether * kTogether, next = std::min(row + kTogether, height);
      if (first == begin + row * width && end >= begin + next * width) {
        i64 last = std::min((end - begin) / width, height);
        if (last < height) last = last / kTogether * kTogether;
        items = decode_rows(matrix, row, last - row, out) * width;
      } else {
        items = std::min(end, begin + next * width) - first;
        std::shared_ptr<const Rows> rows = rows_of(matrix, row, next - row);
        std::memcpy(out, rows->bytes.data() + (first - begin - row * width) * item_bytes_,
                    static_cast<std::size_t>(items * item_bytes_));
      }
    }
  }

  // Threads that want the same rows at once may decode them twice.
  std::shared_ptr<const Rows> rows_of(i64 matrix, i64 first, i64 count) const {
    if (auto kept = memory_.find_rows(tensor_.codes, matrix, first, dtype_)) return kept;
    const i64 row_bytes = layout().rows * item_bytes_;
    auto rows = std::make_shared<Rows>();
    rows->codes = tensor_.codes, rows->matrix = matrix, rows->first = first, rows->dtype = dtype_;
    rows->bytes.resize(static_cast<std::size_t>(count * row_bytes));
    for (i64 done = 0; done < count;)
      done += decode_rows(matrix, first + done, count - done, rows->bytes.data() + done * row_bytes);
    memory_.keep(rows);
    return rows;
  }

  // Groups of columns of a panel.
  static constexpr i64 kPanel = 4;

  // Rows of values of one matrix, as many of them as one panel has. Returns their number.
  i64 decode_rows(i64 matrix, i64 row, i64 rows, u8* out) const {
    std::shared_ptr<const Band> band = band_of(matrix, row / layout().block_columns);
    const i64 skipped = (row / layout().block_columns - band->first) / kPanel * kPanel;
    // The panel is a tensor of its own, with fewer columns; a tile of it begins at a whole group.
    QuantLayout panel = layout();
    panel.matrices = 1, panel.columns = std::min(kPanel, band->groups - skipped) * layout().block_columns;
    const i64 first = (band->first + skipped) * layout().block_columns;
    rows = std::min(rows, first + panel.columns - row);
    ValueTile all{0, panel.rows, 0, panel.columns}, part{0, panel.rows, row - first, rows};
    StoredBytes whole{band->bytes.data() + skipped * panel.rows * layout().block_columns / 2,
                      panel.code_row_bytes(), band->scales.data() + skipped * panel.rows,
                      panel.scale_row_bytes()};
    dequantize_turned(panel, part, stored_at(panel, all, whole, part), dtype_, out, panel.rows * item_bytes_);
    std::span<const u8> values(out, static_cast<std::size_t>(rows * panel.rows * item_bytes_));
    faults_.look_at(tensor_, layout(), {}, band->range, dtype_, values);
    return rows;
  }

  struct Range {
    i64 begin, end;
  };
  // The band with a group of columns of a matrix. Threads that want the same one at once may read it twice.
  std::shared_ptr<const Band> band_of(i64 matrix, i64 group) const {
    if (std::shared_ptr<const Band> band = memory_.find(tensor_.codes, matrix, group)) return band;
    i64 all = layout().scale_columns(), code_bytes = layout().block_columns / 2;
    i64 most = std::clamp<i64>(memory_.band_bytes() / (layout().rows * (code_bytes + 1)), 1, all);
    auto band = std::make_shared<Band>();
    band->codes = tensor_.codes, band->matrix = matrix, band->first = group / most * most;
    band->groups = std::min(most, all - band->first);
    fill(band->bytes, parts_.codes, matrix,
         {band->first * code_bytes, (band->first + band->groups) * code_bytes}, code_bytes,
         layout().code_row_bytes());
    fill(band->scales, parts_.scales, matrix, {band->first, band->first + band->groups}, 1,
         layout().scale_row_bytes());
    band->range = range_of_scales(layout().scales, band->scales);
    memory_.keep(band);
    return band;
  }

  // Bytes [columns) of every row of a matrix, panel by panel. Whole rows are read: a disk reads long
  // stretches fastest. `group`: bytes of a group of columns.
  void fill(ValueMemory::Buffer& to, const Stored& from, i64 matrix, Range columns, i64 group,
            i64 row_bytes) const {
    const i64 rows = layout().rows, width = columns.end - columns.begin, begin = matrix * rows * row_bytes;
    to.resize(static_cast<std::size_t>(rows * width));
    Borrowed buffer(memory_);
    const i64 step = std::max<i64>((i64{256} << 10) / row_bytes, 1);
    for (i64 row = 0; row < rows; row += step) {
      i64 count = std::min(step, rows - row);
      std::span<u8> bytes = buffer.bytes(count * row_bytes);
      from.read(begin + row * row_bytes, bytes);
      for (i64 at = 0; at < width; at += kPanel * group) {
        const i64 of_panel = std::min(kPanel * group, width - at);
        for (i64 r = 0; r < count; r++)
          std::memcpy(to.data() + at * rows + (row + r) * of_panel,
                      bytes.data() + r * row_bytes + columns.begin + at, static_cast<std::size_t>(of_panel));
      }
    }
  }
};

}  // namespace

ValueMemory::ValueMemory(const Store& store)
    : files_(store),
      band_bytes_(std::clamp(kBandsBytes / default_threads(), kLeastBandBytes, kMostBandBytes)),
      most_bands_(static_cast<std::size_t>(std::max<i64>(kBandsBytes / band_bytes_, default_threads()))),
      most_rows_(static_cast<std::size_t>(default_threads() + 1)) {}

std::unique_ptr<ValueMemory::Buffer> ValueMemory::take() {
  std::lock_guard lock(mutex_);
  if (idle_.empty()) return std::make_unique<Buffer>();
  std::unique_ptr<Buffer> buffer = std::move(idle_.back());
  idle_.pop_back();
  return buffer;
}

void ValueMemory::give(std::unique_ptr<Buffer> buffer) {
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(buffer));
}

std::shared_ptr<const ValueMemory::Band> ValueMemory::find(i64 codes, i64 matrix, i64 group) {
  return bands_.find([&](const Band& b) {
    return b.codes == codes && b.matrix == matrix && group >= b.first && group < b.first + b.groups;
  });
}

std::shared_ptr<const ValueMemory::Rows> ValueMemory::find_rows(i64 codes, i64 matrix, i64 first,
                                                                DType dtype) {
  return rows_.find([&](const Rows& r) {
    return r.codes == codes && r.matrix == matrix && r.first == first && r.dtype == dtype;
  });
}

QuantLayout stored_layout(const Store& store, const QuantizedTensor& tensor) {
  return parts_of(store, tensor, StoreBytes(store)).layout;
}

std::shared_ptr<const ByteSource> bytes_in_memory(const Store& store, i64 tensor) {
  StoreBytes files(store);
  i64 bytes = dtype_bytes(store.dtype(tensor), store.shape(tensor).items());
  std::vector<u8> read(static_cast<std::size_t>(bytes));
  if (bytes > 0) stored(store, tensor, files).read(0, read);
  return std::make_shared<KeptBytes>(std::move(read));
}

std::shared_ptr<const ByteSource> value_bytes(const Store& store, const QuantizedTensor& tensor, DType dtype,
                                              ValueMemory& memory, ValueFaults& faults) {
  return with_file(store.root(), [&]() -> std::shared_ptr<const ByteSource> {
    Parts parts = parts_of(store, tensor, memory.files());
    faults.look_at_tensor_scale(tensor, parts.layout);
    if (tensor.turned) return std::make_shared<TurnedValues>(tensor, dtype, memory, faults, std::move(parts));
    return std::make_shared<OrderedValues>(tensor, dtype, memory, faults, std::move(parts));
  });
}

}  // namespace mckpt::impl
