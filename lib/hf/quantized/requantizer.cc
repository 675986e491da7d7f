// The unit of work is a group of whole rows of blocks, at least 1 MiB of values where the matrix has as many; of a
// turned tensor it is a whole matrix, because a row of codes has a value of every row of values.
#include "hf/quantized/requantizer.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "core/items/transpose.h"
#include "core/quantized/dequantize.h"
#include "io/store/store.h"
#include "io/values/finite.h"
#include "io/values/tensor_reader.h"

namespace mckpt::impl {
namespace {

constexpr i64 kUnitBytes = i64{1} << 20;
constexpr std::size_t kMostKept = 8;

}  // namespace

// Codes and scales of rows [first, first + rows), and the rows of scales from scale_row on.
struct Requantizer::Rows {
  i64 first = 0, rows = 0, scale_row = 0;
  i64 blocks = 0, changed = 0;  // `changed`: those with another scale than in the pattern
  std::vector<u8> codes, scales, zero_points;
};

// Codes, or scales, of one tensor: whole units are computed, and cut.
class Requantizer::Bytes final : public ByteSource {
 public:
  Bytes(Requantizer& owner, const Requantized& how, bool scales)
      : ByteSource(size_of(how.layout, scales)), owner_(owner), how_(how), scales_(scales) {}

 private:
  static i64 size_of(const QuantLayout& l, bool scales) {
    return scales ? l.matrices * l.scale_rows() * l.scale_row_bytes() : l.all_rows() * l.code_row_bytes();
  }

  // A row of values whose scales are in that row of the tensor of scales.
  i64 row_of_scales(i64 scale_row) const {
    const QuantLayout& l = how_.layout;
    return scale_row / l.scale_rows() * l.rows + scale_row % l.scale_rows() * l.block_rows;
  }

  void read_inside(i64 offset, std::span<u8> to) const override {
    const QuantLayout& l = how_.layout;
    const i64 row_bytes = scales_ ? l.scale_row_bytes() : l.code_row_bytes();
    while (!to.empty()) {
      i64 row = offset / row_bytes;
      std::shared_ptr<const Rows> rows = owner_.rows_with(how_, scales_ ? row_of_scales(row) : row);
      const std::vector<u8>& bytes = scales_ ? rows->scales : rows->codes;
      i64 at = offset - (scales_ ? rows->scale_row : rows->first) * row_bytes;
      std::size_t n = std::min(to.size(), bytes.size() - static_cast<std::size_t>(at));
      std::memcpy(to.data(), bytes.data() + at, n);
      to = to.subspan(n), offset += static_cast<i64>(n);
    }
  }

  Requantizer& owner_;
  const Requantized& how_;
  bool scales_;
};

Requantizer::Requantizer(const Store& values, const Store* pattern)
    : values_(values), pattern_(pattern), value_files_(values) {
  if (pattern) pattern_files_.emplace(*pattern);
}

Requantizer::~Requantizer() = default;

std::shared_ptr<const ByteSource> Requantizer::codes(const Requantized& how) {
  return std::make_shared<Bytes>(*this, how, false);
}

std::shared_ptr<const ByteSource> Requantizer::scales(const Requantized& how) {
  return std::make_shared<Bytes>(*this, how, true);
}

// The unit that has the row.
std::shared_ptr<const Requantizer::Rows> Requantizer::rows_with(const Requantized& how, i64 row) {
  const QuantLayout& l = how.layout;
  const i64 matrix = row / l.rows * l.rows, item = dtype_bytes(values_.dtype(how.values), 1);
  // Scales that are given need no whole blocks.
  const i64 whole = how.rule ? l.block_rows : 1;
  i64 step = std::max<i64>(kUnitBytes / (l.columns * item) / whole, 1) * whole;
  if (how.turned) step = l.rows;
  const i64 first = matrix + (row - matrix) / step * step;
  {
    std::lock_guard lock(mutex_);
    auto at = std::ranges::find(kept_, std::pair(&how, first), [](const auto& k) { return k.first; });
    if (at != kept_.end()) return at->second;
  }
  std::unique_lock<std::mutex> large;
  if (how.turned) {
    large = std::unique_lock(large_);
    std::lock_guard lock(mutex_);
    auto at = std::ranges::find(kept_, std::pair(&how, first), [](const auto& k) { return k.first; });
    if (at != kept_.end()) return at->second;
  }
  std::shared_ptr<const Rows> made = compute(how, first, std::min(step, matrix + l.rows - first));
  std::lock_guard lock(mutex_);
  if (kept_.size() >= kMostKept) kept_.erase(kept_.begin());
  kept_.emplace_back(std::pair(&how, first), made);
  return made;
}

std::shared_ptr<const Requantizer::Rows> Requantizer::compute(const Requantized& how, i64 first, i64 rows) {
  const QuantLayout& l = how.layout;
  auto out = std::make_shared<Rows>();
  out->first = first, out->rows = rows, out->scale_row = l.scale_row_of(first);
  const i64 scale_rows = l.scale_row_of(first + rows - 1) + 1 - out->scale_row;
  const i64 scale_bytes = scale_rows * l.scale_row_bytes();
  out->codes.resize(static_cast<std::size_t>(rows * l.code_row_bytes()));
  out->blocks = scale_rows * l.scale_columns();
  const std::vector<u8> values = values_of(how, first, rows);
  NonFinite bad;
  scan_non_finite(values_.dtype(how.values), values, 0, bad);
  if (bad.count() > 0) refuse_non_finite(how.values);
  const RowsOfValues view{values_.dtype(how.values), values.data(),
                       l.columns * dtype_bytes(values_.dtype(how.values), 1)};
  auto write_codes = [&] {
    const u8* zeros = out->zero_points.empty() ? nullptr : out->zero_points.data();
    QuantLosses losses = quantize(l, first, rows, view, out->scales.data(), zeros, out->codes.data());
    if (losses.nan > 0)
      throw Error(Code::kBadScale, "a scale of the quantised source gives no codes for finite values")
          .tensor(values_.name(how.values))
          .expected("scales that are positive numbers")
          .found(cat("NaN as ", losses.nan, " quotients of value and scale in rows from ", first));
  };
  if (how.pattern_scales >= 0) {
    out->scales = pattern_bytes(how.pattern_scales, out->scale_row * l.scale_row_bytes(),
                                out->scale_row * l.scale_row_bytes() + scale_bytes);
    if (l.zero_points) {
      ByteRange range = stored_ranges(l, first * l.columns, (first + rows) * l.columns).zero_points;
      out->zero_points = pattern_bytes(how.pattern_zero_points, range.begin, range.end);
    }
    write_codes();
    keep_scales(how, *out, values);
    if (out->changed == 0) return out;
  } else {
    out->scales.resize(static_cast<std::size_t>(scale_bytes));
    make_scales(l, *how.rule, first, rows, view, out->scales.data());
  }
  write_codes();
  return out;
}

// The error counts those of the whole tensor, and their places are those of the store of values, turned or not.
void Requantizer::refuse_non_finite(i64 tensor) const {
  const DType type = values_.dtype(tensor);
  const Shape shape = values_.shape(tensor);
  const i64 item = dtype_bytes(type, 1), items = shape.items(), step = kUnitBytes / item;
  NonFinite found;
  std::vector<u8> bytes;
  for (i64 at = 0; at < items; at += step) {
    bytes.resize(static_cast<std::size_t>(std::min(step, items - at) * item));
    read_values(tensor, at * item, bytes);
    scan_non_finite(type, bytes, at, found);
  }
  std::string what;
  auto part = [&](i64 count, i64 first, const char* one, const char* many) {
    if (count == 0) return;
    what += cat(what.empty() ? "" : ", ", with_commas(count), " ", count == 1 ? one : many, ", the first at ",
                dims_to_string(item_index(first, values_.dims(tensor))));
  };
  part(found.nans, found.first_nan, "NaN", "NaN");
  part(found.infinities, found.first_infinity, "infinity", "infinities");
  throw Error(Code::kBadScale, "values that are NaN or infinite cannot be quantised")
      .tensor(values_.name(tensor))
      .expected("finite numbers")
      .found(what);
}

// Compares what the codes stand for with the values, block by block; a block that differs gets a scale of its own.
void Requantizer::keep_scales(const Requantized& how, Rows& out, std::span<const u8> values) const {
  const QuantLayout& l = how.layout;
  const DType type = values_.dtype(how.values);
  const i64 item = dtype_bytes(type, 1), row_bytes = l.columns * item;
  std::vector<u8> again(values.size()), fresh;
  dequantize_items(l, out.first * l.columns, (out.first + out.rows) * l.columns, out.codes, out.scales,
                   out.zero_points, type, again.data());
  if (std::ranges::equal(again, values)) return;
  std::vector<bool> differs(static_cast<std::size_t>(out.blocks));
  for (i64 r = 0; r < out.rows; r++)
    for (i64 b = 0; b < l.scale_columns(); b++) {
      i64 begin = r * row_bytes + b * l.block_columns * item;
      i64 bytes = std::min(l.block_columns, l.columns - b * l.block_columns) * item;
      if (std::memcmp(again.data() + begin, values.data() + begin, static_cast<std::size_t>(bytes)) != 0)
        differs[(l.scale_row_of(out.first + r) - out.scale_row) * l.scale_columns() + b] = true;
    }
  if (!how.rule)
    throw Error(Code::kBadScale,
                "values are not those of the pattern, and only its own scales are known for this scheme")
        .tensor(values_.name(how.values))
        .expected("the values of the quantised source")
        .found(cat("other values in rows from ", out.first))
        .help("quantise to blocks of FP8 or to MXFP4, whose scales can be made anew");
  fresh.resize(out.scales.size());
  make_scales(l, *how.rule, out.first, out.rows, {type, values.data(), row_bytes}, fresh.data());
  const i64 one = dtype_bytes(l.scales, 1);
  for (i64 b = 0; b < out.blocks; b++)
    if (differs[b]) {
      std::memcpy(out.scales.data() + b * one, fresh.data() + b * one, static_cast<std::size_t>(one));
      out.changed++;
    }
}

// Values in the order of the codes.
std::vector<u8> Requantizer::values_of(const Requantized& how, i64 first, i64 rows) const {
  const QuantLayout& l = how.layout;
  const i64 item = dtype_bytes(values_.dtype(how.values), 1);
  std::vector<u8> out(static_cast<std::size_t>(rows * l.columns * item));
  if (!how.turned) {
    read_values(how.values, first * l.columns * item, out);
    return out;
  }
  // pre: a whole matrix, whose rows of values are the columns of codes.
  std::vector<u8> turned(out.size());
  read_values(how.values, first * l.columns * item, turned);
  transpose({l.columns, l.rows, l.rows, 1, l.columns, 1}, item, turned.data(), out.data());
  return out;
}

// Bytes of the row-major form from `begin` on. A source that computes them is asked once for all: a checkpoint of
// another order has the values of a few rows all over the tensor.
void Requantizer::read_values(i64 tensor, i64 begin, std::span<u8> to) const {
  if (values_.chunk_count(tensor) == 1) {
    ChunkData data = values_.resolve(tensor, 0);
    if (data.unpacked && data.strides.empty() && !data.big_endian)
      return data.unpacked->read(data.offset + begin, to);
  }
  const i64 item = dtype_bytes(values_.dtype(tensor), 1);
  TensorReader(values_, value_files_)
      .read(tensor, begin / item, (begin + std::ssize(to)) / item, [&](std::span<const u8> bytes, i64 at) {
        std::memcpy(to.data() + (at - begin), bytes.data(), bytes.size());
      });
}

std::vector<u8> Requantizer::pattern_bytes(i64 tensor, i64 begin, i64 end) const {
  std::vector<u8> out(static_cast<std::size_t>(end - begin));
  const i64 item = dtype_bytes(pattern_->dtype(tensor), 1);
  TensorReader(*pattern_, *pattern_files_)
      .read(tensor, begin / item, end / item, [&](std::span<const u8> bytes, i64 at) {
        std::memcpy(out.data() + (at - begin), bytes.data(), bytes.size());
      });
  return out;
}

}  // namespace mckpt::impl
