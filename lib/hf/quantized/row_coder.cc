// Codes of rows, and which scales they get.
#include "hf/quantized/row_coder.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "core/quantized/dequantize.h"
#include "io/store/store.h"
#include "io/values/finite.h"
#include "io/values/tensor_reader.h"

namespace mckpt::impl {
namespace {

constexpr i64 kStepBytes = i64{1} << 20;  // of values that are looked at for an error message

}  // namespace

RowCoder::RowCoder(const Store& values, const Store* pattern)
    : values_(values), pattern_(pattern), value_files_(values) {
  if (pattern) pattern_files_.emplace(*pattern);
}

DType RowCoder::type(const Requantized& how) const { return values_.dtype(how.values); }

void RowCoder::code(const Requantized& how, i64 first, i64 rows, std::span<const u8> values,
                    std::span<u8> codes, std::span<u8> scales) const {
  const QuantLayout& l = how.layout;
  const DType type = this->type(how);
  NonFinite bad;
  scan_non_finite(type, values, 0, bad);
  if (bad.count() > 0) refuse_non_finite(how.values);
  const RowsOfValues view{type, values.data(), l.columns * dtype_bytes(type, 1)};
  std::vector<u8> zero_points;
  auto write_codes = [&] {
    const u8* zeros = zero_points.empty() ? nullptr : zero_points.data();
    QuantLosses losses = quantize(l, first, rows, view, scales.data(), zeros, codes.data());
    if (losses.nan > 0)
      throw Error(Code::kBadScale, "a scale of the quantised source gives no codes for finite values")
          .tensor(values_.name(how.values))
          .expected("scales that are positive numbers")
          .found(cat("NaN as ", losses.nan, " quotients of value and scale in rows from ", first));
  };
  if (how.pattern_scales < 0) {
    make_scales(l, *how.rule, first, rows, view, scales.data());
    if (!codes.empty()) write_codes();
    return;
  }
  const i64 scales_at = l.scale_row_of(first) * l.scale_row_bytes();
  std::ranges::copy(pattern_bytes(how.pattern_scales, scales_at, scales_at + std::ssize(scales)),
                    scales.begin());
  if (l.zero_points) {
    ByteRange range = stored_ranges(l, first * l.columns, (first + rows) * l.columns).zero_points;
    zero_points = pattern_bytes(how.pattern_zero_points, range.begin, range.end);
  }
  write_codes();
  if (!keep_scales(how, first, rows, values, scales, codes, zero_points)) write_codes();
}

// The error counts the non-finite values of the whole tensor, and gives their places in the store of values,
// turned or not.
void RowCoder::refuse_non_finite(i64 tensor) const {
  const DType type = values_.dtype(tensor);
  const Shape shape = values_.shape(tensor);
  const i64 item = dtype_bytes(type, 1), items = shape.items(), step = kStepBytes / item;
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

// Compares what the codes stand for with the values, block by block; a block that differs gets a scale of its
// own. Returns whether there was none.
bool RowCoder::keep_scales(const Requantized& how, i64 first, i64 rows, std::span<const u8> values,
                           std::span<u8> scales, std::span<const u8> codes,
                           std::span<const u8> zero_points) const {
  const QuantLayout& l = how.layout;
  const DType type = values_.dtype(how.values);
  const i64 item = dtype_bytes(type, 1), row_bytes = l.columns * item, scale_row = l.scale_row_of(first);
  std::vector<u8> again(values.size());
  dequantize_items(l, first * l.columns, (first + rows) * l.columns, codes, scales, zero_points, type,
                   again.data());
  if (std::ranges::equal(again, values)) return true;
  const i64 one = dtype_bytes(l.scales, 1), blocks = std::ssize(scales) / one;
  std::vector<bool> differs(static_cast<std::size_t>(blocks));
  for (i64 r = 0; r < rows; r++)
    for (i64 b = 0; b < l.scale_columns(); b++) {
      i64 begin = r * row_bytes + b * l.block_columns * item;
      i64 bytes = std::min(l.block_columns, l.columns - b * l.block_columns) * item;
      if (std::memcmp(again.data() + begin, values.data() + begin, static_cast<std::size_t>(bytes)) != 0)
        differs[(l.scale_row_of(first + r) - scale_row) * l.scale_columns() + b] = true;
    }
  if (!how.rule)
    throw Error(Code::kBadScale,
                "values are not those of the quantised model, and mckpt makes no new scales for its scheme")
        .tensor(values_.name(how.values))
        .expected("the values of the quantised source")
        .found(cat("other values in rows from ", first))
        .help("quantise to blocks of FP8 or to MXFP4, whose scales can be made anew");
  std::vector<u8> fresh(scales.size());
  make_scales(l, *how.rule, first, rows, {type, values.data(), row_bytes}, fresh.data());
  for (i64 b = 0; b < blocks; b++)
    if (differs[b])
      std::memcpy(scales.data() + b * one, fresh.data() + b * one, static_cast<std::size_t>(one));
  return false;
}

// Bytes of the row-major form from `begin` on. A source that computes them is asked once for all: a
// checkpoint of another order has the values of a few rows all over the tensor.
void RowCoder::read_values(i64 tensor, i64 begin, std::span<u8> to) const {
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

std::vector<u8> RowCoder::pattern_bytes(i64 tensor, i64 begin, i64 end) const {
  std::vector<u8> out(static_cast<std::size_t>(end - begin));
  const i64 item = dtype_bytes(pattern_->dtype(tensor), 1);
  TensorReader(*pattern_, *pattern_files_)
      .read(tensor, begin / item, end / item, [&](std::span<const u8> bytes, i64 at) {
        std::memcpy(out.data() + (at - begin), bytes.data(), bytes.size());
      });
  return out;
}

}  // namespace mckpt::impl
