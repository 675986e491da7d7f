// Items are computed in pieces of a few rows, so that they are in the cache from the read to the cast.
#include "hf/adapter/adapted_bytes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/error.h"
#include "core/items/dtype.h"
#include "core/items/item_cast.h"
#include "core/items/row_sums.h"
#include "core/items/shape.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

// Floats that are kept between reads, 64 MiB; what a read uses it keeps alive itself.
constexpr i64 kMostKept = i64{16} << 20;
// Items of a piece.
constexpr i64 kPiece = i64{1} << 16;

void read_items(const Store& store, const StoreBytes& files, i64 tensor, i64 first, i64 count, u8* out) {
  ChunkData data = store.resolve(tensor, 0);
  const i64 bytes = dtype_bytes(data.dtype, 1);
  const ByteSource& source = data.unpacked ? *data.unpacked : files[data.file];
  source.read(data.offset + first * bytes, {out, static_cast<std::size_t>(count * bytes)});
}

ItemCast cast_between(DType from, DType to) { return {from, to, to}; }

// Values of a type through a smaller one, as float.
void round_through(DType dtype, std::span<float> values) {
  if (dtype == DType::kF32) return;
  ItemCast cast{DType::kF32, dtype, DType::kF32};
  u8* at = reinterpret_cast<u8*>(values.data());
  cast_items(cast, at, at, std::ssize(values));
}

// The factors of a tensor: rows of the right one are added up with numbers of the left one.
//
//   plain    left B [rows, ranks]      right A [ranks, columns]
//   turned   left A [ranks, rows]      right B transposed [ranks, columns]
struct Factors {
  AdapterMemory::Values left, right, magnitude;
  i64 left_width = 0, width = 0;  // items of a row of left and right
};

// What one read computes with.
struct Work {
  Factors factors;
  std::vector<float> values, sums, numbers;
  std::vector<const float*> rows;
  std::vector<u8> bytes;
};

class AdaptedBytes final : public ByteSource {
 public:
  AdaptedBytes(const AdaptedTensor& tensor, AdapterMemory& memory)
      : ByteSource(
            dtype_bytes(memory.base().dtype(tensor.tensor), memory.base().shape(tensor.tensor).items())),
        t_(tensor),
        memory_(memory),
        dtype_(memory.base().dtype(tensor.tensor)),
        item_bytes_(dtype_bytes(dtype_, 1)) {
    std::span<const i64> dims = memory.base().dims(tensor.tensor);
    columns_ = dims.empty() ? 1 : dims.back();
    rows_ = dims.size() < 2 ? 1 : dims[dims.size() - 2];
  }

 private:
  void read_inside(i64 offset, std::span<u8> to) const override {
    const i64 end = offset + std::ssize(to);
    if (offset == end) return;
    Work work;
    if (t_.a >= 0) work.factors = factors();
    // Norms are those of whole rows.
    const i64 unit = t_.magnitude >= 0 ? columns_ : 1, step = std::max(kPiece / unit * unit, unit);
    const i64 stop = ceil_div(ceil_div(end, item_bytes_), unit) * unit;
    for (i64 first = offset / item_bytes_ / unit * unit; first < stop; first += step) {
      const i64 count = std::min(step, stop - first);
      compute(first, count, work);
      const i64 begin = first * item_bytes_, from = std::max(begin, offset);
      const i64 until = std::min(begin + count * item_bytes_, end);
      std::memcpy(to.data() + (from - offset), work.bytes.data() + (from - begin),
                  static_cast<std::size_t>(until - from));
    }
  }

  Factors factors() const {
    const Store& adapter = memory_.adapter();
    Factors out;
    out.left = memory_.values(t_.turned ? t_.a : t_.b, false);
    out.right = memory_.values(t_.turned ? t_.b : t_.a, t_.turned);
    out.left_width = adapter.dims(t_.turned ? t_.a : t_.b)[1];
    out.width = t_.turned ? adapter.dims(t_.b)[0] : adapter.dims(t_.a)[1];
    if (t_.magnitude >= 0) out.magnitude = memory_.values(t_.magnitude, false);
    return out;
  }

  // Items [first, first + count) into work.bytes.
  void compute(i64 first, i64 count, Work& work) const {
    work.values.resize(static_cast<std::size_t>(count));
    work.bytes.resize(static_cast<std::size_t>(count * item_bytes_));
    if (t_.replaced >= 0)
      replace(first, count, work);
    else
      memory_.read_base(t_.tensor, first, count, work.bytes.data());
    if (t_.a < 0 && t_.added < 0) return;
    u8* values = reinterpret_cast<u8*>(work.values.data());
    cast_items(cast_between(dtype_, DType::kF32), work.bytes.data(), values, count);
    if (t_.added >= 0) add_vector(first, work);
    for (i64 at = first, end = first + count; t_.a >= 0 && at < end;) {
      const i64 row = at / columns_, next = std::min((row + 1) * columns_, end);
      add_row(row, at - row * columns_,
              std::span(work.values)
                  .subspan(static_cast<std::size_t>(at - first), static_cast<std::size_t>(next - at)),
              work);
      at = next;
    }
    cast_items(cast_between(DType::kF32, dtype_), values, work.bytes.data(), count);
  }

  // The adapter's own values, in the type of the base.
  void replace(i64 first, i64 count, Work& work) const {
    const DType own = memory_.adapter().dtype(t_.replaced);
    std::vector<u8> read(static_cast<std::size_t>(dtype_bytes(own, count)));
    memory_.read_adapter(t_.replaced, first, count, read.data());
    cast_items(cast_between(own, dtype_), read.data(), work.bytes.data(), count);
  }

  void add_vector(i64 first, Work& work) const {
    const AdapterMemory::Values own = memory_.values(t_.added, false);
    const float scale = static_cast<float>(t_.scale);
    for (std::size_t i = 0; i < work.values.size(); i++)
      work.values[i] += (*own)[static_cast<std::size_t>(first) + i] * scale;
  }

  // Adds the product to items of a row, from `column` on; `row` counts through all matrices of a stack.
  void add_row(i64 row, i64 column, std::span<float> values, Work& work) const {
    const Factors& f = work.factors;
    const i64 expert = t_.stack ? row / rows_ : t_.expert, i = (t_.stack ? row % rows_ : row) + t_.first_row;
    work.numbers.clear(), work.rows.clear();
    for (i64 k = 0; k < t_.rank; k++) {
      // A has the ranks of an expert one after the other, B those of all experts for each rank.
      const i64 in_a = expert * t_.rank + k, in_b = k * t_.experts + expert;
      const float* left = f.left->data();
      work.numbers.push_back(t_.turned ? left[in_a * f.left_width + i] : left[i * f.left_width + in_b]);
      work.rows.push_back(f.right->data() + (t_.turned ? in_b : in_a) * f.width + column);
    }
    work.sums.resize(values.size());
    sum_rows(work.numbers, work.rows, work.sums);
    const float scale = static_cast<float>(t_.scale);
    for (float& sum : work.sums) sum *= scale;
    if (t_.rounded) round_through(dtype_, work.sums);
    for (std::size_t j = 0; j < values.size(); j++) values[j] += work.sums[j];
    if (f.magnitude) set_norm((*f.magnitude)[static_cast<std::size_t>(i)], values);
  }

  static void set_norm(float magnitude, std::span<float> row) {
    double squares = 0;
    for (float v : row) squares += static_cast<double>(v) * v;
    const float factor = magnitude / static_cast<float>(std::sqrt(squares));
    for (float& v : row) v *= factor;
  }

  const AdaptedTensor& t_;
  AdapterMemory& memory_;
  DType dtype_;
  i64 item_bytes_, rows_ = 1, columns_ = 1;
};

std::vector<float> transposed_values(const std::vector<float>& values, i64 rows, i64 columns) {
  std::vector<float> out(values.size());
  for (i64 r = 0; r < rows; r++)
    for (i64 c = 0; c < columns; c++)
      out[static_cast<std::size_t>(c * rows + r)] = values[static_cast<std::size_t>(r * columns + c)];
  return out;
}

}  // namespace

AdapterMemory::AdapterMemory(const Store& base, const Store& adapter)
    : base_(base), adapter_(adapter), base_bytes_(base), adapter_bytes_(adapter) {}

void AdapterMemory::read_base(i64 tensor, i64 first, i64 count, u8* out) const {
  read_items(base_, base_bytes_, tensor, first, count, out);
}

void AdapterMemory::read_adapter(i64 tensor, i64 first, i64 count, u8* out) const {
  read_items(adapter_, adapter_bytes_, tensor, first, count, out);
}

AdapterMemory::Values AdapterMemory::find(i64 tensor, bool transposed) {
  std::lock_guard lock(mutex_);
  auto at = std::ranges::find_if(
      kept_, [&](const Kept& k) { return k.tensor == tensor && k.transposed == transposed; });
  if (at == kept_.end()) return nullptr;
  std::rotate(at, at + 1, kept_.end());
  return kept_.back().values;
}

void AdapterMemory::keep(Kept kept) {
  std::lock_guard lock(mutex_);
  kept_items_ += std::ssize(*kept.values);
  kept_.push_back(std::move(kept));
  while (kept_items_ > kMostKept && kept_.size() > 1) {
    kept_items_ -= std::ssize(*kept_.front().values);
    kept_.erase(kept_.begin());
  }
}

// Threads that want the same one at once may read it twice.
AdapterMemory::Values AdapterMemory::values(i64 tensor, bool transposed) {
  if (Values known = find(tensor, transposed)) return known;
  const DType dtype = adapter_.dtype(tensor);
  const i64 items = adapter_.shape(tensor).items();
  std::vector<u8> bytes(static_cast<std::size_t>(dtype_bytes(dtype, items)));
  if (items > 0) read_adapter(tensor, 0, items, bytes.data());
  std::vector<float> values(static_cast<std::size_t>(items));
  cast_items(cast_between(dtype, DType::kF32), bytes.data(), reinterpret_cast<u8*>(values.data()), items);
  if (transposed) values = transposed_values(values, adapter_.dims(tensor)[0], adapter_.dims(tensor)[1]);
  auto out = std::make_shared<const std::vector<float>>(std::move(values));
  keep({tensor, transposed, out});
  return out;
}

std::shared_ptr<const ByteSource> adapted_bytes(const AdaptedTensor& tensor, AdapterMemory& memory) {
  return std::make_shared<AdaptedBytes>(tensor, memory);
}

}  // namespace mckpt::impl
