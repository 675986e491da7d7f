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
#include "io/copy/lost_values.h"
#include "io/store/store.h"
#include "io/values/finite.h"

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

// Values of a pair of factors: rows of the right one are added up with numbers of the left one.
//
//   plain    left B [rows, ranks]      right A [ranks, columns]
//   turned   left A [ranks, rows]      right B transposed [ranks, columns]
struct Factors {
  AdapterMemory::Values left, right, magnitude;
  i64 left_width = 0, width = 0;  // items of a row of left and right
};

// The memory that one read computes with.
struct Work {
  std::vector<Factors> factors;
  std::vector<float> values, sums, numbers;
  std::vector<const float*> rows;
  std::vector<u8> bytes;
};

class AdaptedBytes final : public ByteSource {
 public:
  AdaptedBytes(const AdaptedTensor& tensor, DType type, AdapterMemory& memory)
      : ByteSource(dtype_bytes(type, items_of(tensor, memory))),
        t_(tensor),
        memory_(memory),
        dtype_(memory.base().dtype(tensor.from)),
        type_(type),
        item_bytes_(dtype_bytes(type, 1)) {
    std::span<const i64> dims = dims_of(tensor, memory);
    columns_ = dims.empty() ? 1 : dims.back();
    rows_ = dims.size() < 2 ? 1 : dims[dims.size() - 2];
  }

 private:
  static std::span<const i64> dims_of(const AdaptedTensor& t, const AdapterMemory& memory) {
    return t.replaced >= 0 ? memory.adapter().dims(t.replaced) : memory.base().dims(t.from);
  }
  static i64 items_of(const AdaptedTensor& t, const AdapterMemory& memory) {
    return Shape(dims_of(t, memory)).items();
  }

  void read_inside(i64 offset, std::span<u8> to) const override {
    const i64 end = offset + std::ssize(to);
    if (offset == end) return;
    Work work = begin_work();
    // Norms belong to whole rows.
    const bool of_rows = std::ranges::any_of(
        t_.factors, [](const AdaptedFactors& f) { return f.magnitude >= 0 && !f.turned; });
    const i64 unit = of_rows ? columns_ : 1, step = std::max(kPiece / unit * unit, unit);
    const i64 stop = ceil_div(ceil_div(end, item_bytes_), unit) * unit;
    for (i64 first = offset / item_bytes_ / unit * unit; first < stop; first += step) {
      const i64 count = std::min(step, stop - first);
      compute(first, count, work);
      const i64 begin = first * item_bytes_, from = std::max(begin, offset);
      const i64 until = std::min(begin + count * item_bytes_, end);
      std::span<const u8> wanted =
          std::span<const u8>(work.bytes)
              .subspan(static_cast<std::size_t>(from - begin), static_cast<std::size_t>(until - from));
      look_for_losses(from / item_bytes_, wanted);
      std::memcpy(to.data() + (from - offset), wanted.data(), wanted.size());
    }
  }

  Work begin_work() const {
    Work work;
    for (const AdaptedFactors& f : t_.factors) work.factors.push_back(factors(f));
    return work;
  }

  Factors factors(const AdaptedFactors& f) const {
    const Store& adapter = memory_.adapter();
    Factors out;
    out.left = memory_.values(f.turned ? f.a : f.b, false);
    out.right = memory_.values(f.turned ? f.b : f.a, f.turned);
    out.left_width = adapter.dims(f.turned ? f.a : f.b)[1];
    out.width = f.turned ? adapter.dims(f.b)[0] : adapter.dims(f.a)[1];
    if (f.magnitude >= 0 && f.turned)
      out.magnitude = memory_.column_factors(f, [&] { return column_factors(f); });
    else if (f.magnitude >= 0)
      out.magnitude = memory_.values(f.magnitude, false);
    return out;
  }

  // Items [first, first + count) into work.bytes, in the wanted type.
  void compute(i64 first, i64 count, Work& work) const {
    work.bytes.resize(static_cast<std::size_t>(count * std::max(item_bytes_, dtype_bytes(dtype_, 1))));
    if (t_.factors.empty() && t_.added < 0 && t_.tokens.empty()) {
      read_as(type_, first, count, work.bytes.data());
      work.bytes.resize(static_cast<std::size_t>(count * item_bytes_));
      return;
    }
    read_values(first, count, work);
    for (std::size_t i = 0; i < t_.factors.size(); i++) add_factors(i, first, work);
    if (t_.added >= 0) add_vector(first, work);
    for (const AdaptedRows& rows : t_.tokens) put_rows(rows, first, work);
    work.bytes.resize(static_cast<std::size_t>(count * item_bytes_));
    cast_items(cast_between(DType::kF32, type_), reinterpret_cast<const u8*>(work.values.data()),
               work.bytes.data(), count);
  }

  // The changes by the adapter, as float. Where the result has the base's type, what is replaced has it too
  // before anything is added.
  void read_values(i64 first, i64 count, Work& work) const {
    work.values.resize(static_cast<std::size_t>(count));
    read_as(DType::kF32, first, count, reinterpret_cast<u8*>(work.values.data()));
    if (t_.replaced >= 0 && type_ == dtype_) round_through(dtype_, work.values);
  }

  // Items of the base, or of what replaces it, cast to a type.
  void read_as(DType type, i64 first, i64 count, u8* to) const {
    const bool replaced = t_.replaced >= 0;
    const DType own = replaced ? memory_.adapter().dtype(t_.replaced) : dtype_;
    std::vector<u8> read(static_cast<std::size_t>(dtype_bytes(own, count)));
    if (replaced)
      memory_.read_adapter(t_.replaced, first, count, read.data());
    else
      memory_.read_base(t_.from, first, count, read.data());
    cast_items(cast_between(own, type), read.data(), to, count);
  }

  void add_vector(i64 first, Work& work) const {
    const AdapterMemory::Values own = memory_.values(t_.added, false);
    const float scale = static_cast<float>(t_.added_scale);
    for (std::size_t i = 0; i < work.values.size(); i++)
      work.values[i] += (*own)[static_cast<std::size_t>(first) + i] * scale;
  }

  void put_rows(const AdaptedRows& rows, i64 first, Work& work) const {
    const AdapterMemory::Values own = memory_.values(rows.tensor, false);
    const i64 end = first + std::ssize(work.values);
    for (std::size_t n = 0; n < rows.rows.size(); n++) {
      const i64 row = rows.rows[n] * columns_, begin = std::max(row, first);
      for (i64 at = begin; at < std::min(row + columns_, end); at++)
        work.values[at - first] = (*own)[static_cast<std::size_t>(static_cast<i64>(n) * columns_ + at - row)];
    }
  }

  // Adds a pair to the values from item `first` on, row by row.
  void add_factors(std::size_t which, i64 first, Work& work) const {
    if (which > 0 && type_ == dtype_) round_through(dtype_, work.values);
    const i64 end = first + std::ssize(work.values);
    for (i64 at = first; at < end;) {
      const i64 row = at / columns_, next = std::min((row + 1) * columns_, end);
      add_row(which, row, at - row * columns_,
              std::span(work.values)
                  .subspan(static_cast<std::size_t>(at - first), static_cast<std::size_t>(next - at)),
              work);
      at = next;
    }
  }

  // Adds the product to items of a row, from `column` on; `row` counts through all matrices of a stack.
  void add_row(std::size_t which, i64 row, i64 column, std::span<float> values, Work& work) const {
    const AdaptedFactors& t = t_.factors[which];
    const Factors& f = work.factors[which];
    const i64 expert = t.stack ? row / rows_ : t.expert, i = (t.stack ? row % rows_ : row) + t.first_row;
    work.numbers.clear(), work.rows.clear();
    for (i64 k = 0; k < t.rank; k++) {
      // A has the ranks of an expert one after the other; B has all experts for each rank.
      const i64 in_a = expert * t.rank + k, in_b = k * t.experts + expert;
      const float* left = f.left->data();
      work.numbers.push_back(t.turned ? left[in_a * f.left_width + i] : left[i * f.left_width + in_b]);
      work.rows.push_back(f.right->data() + (t.turned ? in_b : in_a) * f.width + column);
    }
    work.sums.resize(values.size());
    sum_rows(work.numbers, work.rows, work.sums);
    const float scale = static_cast<float>(t.scale);
    for (float& sum : work.sums) sum *= scale;
    if (t.rounded && type_ == dtype_) round_through(dtype_, work.sums);
    for (std::size_t j = 0; j < values.size(); j++) values[j] += work.sums[j];
    if (!f.magnitude) return;
    if (t.turned)
      for (std::size_t j = 0; j < values.size(); j++)
        values[j] *= (*f.magnitude)[static_cast<std::size_t>(column) + j];
    else
      set_norm((*f.magnitude)[static_cast<std::size_t>(i)], values);
  }

  static void set_norm(float magnitude, std::span<float> row) {
    double squares = 0;
    for (float v : row) squares += static_cast<double>(v) * v;
    const float factor = magnitude / static_cast<float>(std::sqrt(squares));
    for (float& v : row) v *= factor;
  }

  // Magnitudes over the norms of columns: these are known when all rows have been computed once.
  std::vector<float> column_factors(const AdaptedFactors& f) const {
    AdaptedTensor sum = t_;
    sum.tokens.clear(), sum.added = -1;
    sum.factors = {f};
    sum.factors[0].magnitude = -1;
    const AdaptedBytes values(sum, DType::kF32, memory_);
    const i64 all = values.size() / 4, step = std::max(kPiece / columns_, i64{1}) * columns_;
    std::vector<double> squares(static_cast<std::size_t>(columns_));
    std::vector<float> piece(static_cast<std::size_t>(step));
    for (i64 at = 0; at < all; at += step) {
      const i64 count = std::min(step, all - at);
      values.read(at * 4, {reinterpret_cast<u8*>(piece.data()), static_cast<std::size_t>(count * 4)});
      for (i64 i = 0; i < count; i++)
        squares[i % columns_] += static_cast<double>(piece[i]) * static_cast<double>(piece[i]);
    }
    const AdapterMemory::Values magnitude = memory_.values(f.magnitude, false);
    std::vector<float> out(squares.size());
    for (std::size_t j = 0; j < out.size(); j++)
      out[j] = (*magnitude)[j] / static_cast<float>(std::sqrt(squares[j]));
    return out;
  }

  // Infinite results of numbers that are finite.
  void look_for_losses(i64 first, std::span<const u8> items) const {
    NonFinite found;
    scan_non_finite(type_, items, 0, found);
    if (found.infinities == 0) return;
    const i64 count = std::ssize(items) / item_bytes_;
    std::vector<float> before(static_cast<std::size_t>(count)), after(before.size());
    read_as(DType::kF32, first, count, reinterpret_cast<u8*>(before.data()));
    cast_items(cast_between(type_, DType::kF32), items.data(), reinterpret_cast<u8*>(after.data()), count);
    i64 lost = 0;
    for (i64 i = 0; i < count; i++) lost += std::isinf(after[i]) && std::isfinite(before[i]);
    if (lost > 0)
      memory_.count_infinite(t_.name.empty() ? std::string(memory_.base().name(t_.from)) : t_.name, lost);
  }

  const AdaptedTensor& t_;
  AdapterMemory& memory_;
  DType dtype_, type_;  // of the base, and of what is read
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

AdapterMemory::Values AdapterMemory::column_factors(const AdaptedFactors& of,
                                                    const std::function<std::vector<float>()>& make) {
  {
    std::lock_guard lock(mutex_);
    if (auto at = column_factors_.find(&of); at != column_factors_.end()) return at->second;
  }
  auto made = std::make_shared<const std::vector<float>>(make());
  std::lock_guard lock(mutex_);
  return column_factors_[&of] = std::move(made);
}

void AdapterMemory::count_infinite(const std::string& name, i64 items) {
  std::lock_guard lock(mutex_);
  infinite_[name] += items;
}

void AdapterMemory::add_losses(LostValues& lost) const {
  std::lock_guard lock(mutex_);
  for (const auto& [name, items] : infinite_) lost.add(name, {items, 0});
}

std::shared_ptr<const ByteSource> adapted_bytes(const AdaptedTensor& tensor, DType type,
                                                AdapterMemory& memory) {
  return std::make_shared<AdaptedBytes>(tensor, type, memory);
}

}  // namespace mckpt::impl
