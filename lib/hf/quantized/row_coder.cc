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

// Rows, with the parts that the pattern has of them.
struct RowCoder::Rows {
  const Requantized& how;
  i64 first, count;
  RowsOfValues values;
  std::span<const u8> value_bytes;
  std::span<u8> codes, scales;
  std::vector<u8> zero_points{};

  // The values that some codes stand for, with the scales as they are.
  std::vector<u8> decoded(std::span<const u8> some) const {
    const QuantLayout& l = how.layout;
    std::vector<u8> out(value_bytes.size());
    dequantize_items(l, first * l.columns, (first + count) * l.columns, some, scales, zero_points,
                     values.type, out.data());
    return out;
  }
  // Calls fn(row, block of all, first byte, bytes) for the parts of each row in each block.
  template <typename Fn>
  void each_part(Fn&& fn) const {
    const QuantLayout& l = how.layout;
    const i64 item = dtype_bytes(values.type, 1), scale_row = l.scale_row_of(first);
    for (i64 r = 0; r < count; r++)
      for (i64 column = 0, end = 0; column < l.columns; column = end) {
        end = l.block_end(column);
        fn(r, (l.scale_row_of(first + r) - scale_row) * l.scale_columns() + l.block_of(column),
           r * values.row_bytes + column * item, (end - column) * item);
      }
  }
};

void RowCoder::code(const Requantized& how, i64 first, i64 rows, std::span<const u8> values,
                    std::span<u8> codes, std::span<u8> scales) const {
  const QuantLayout& l = how.layout;
  const DType type = this->type(how);
  NonFinite bad;
  scan_non_finite(type, values, 0, bad);
  if (bad.count() > 0) refuse_non_finite(how.values);
  const RowsOfValues view{type, values.data(), l.columns * dtype_bytes(type, 1)};
  Rows work{how, first, rows, view, values, codes, scales};
  if (how.pattern_scales < 0) {
    make_scales(l, *how.rule, first, rows, view, scales.data());
    if (!codes.empty()) write_codes(work);
    return;
  }
  const i64 scales_at = l.scale_row_of(first) * l.scale_row_bytes();
  std::ranges::copy(pattern_bytes(how.pattern_scales, scales_at, scales_at + std::ssize(scales)),
                    scales.begin());
  if (l.zero_points) {
    ByteRange range = stored_ranges(l, first * l.columns, (first + rows) * l.columns).zero_points;
    work.zero_points = pattern_bytes(how.pattern_zero_points, range.begin, range.end);
  }
  code_like(work);
}

// Several codes may stand for one value, and the nearest code of a rounded value may be another one than the
// pattern has. So a code of the pattern stays where it gives exactly the value.
void RowCoder::code_like(const Rows& rows) const {
  const QuantLayout& l = rows.how.layout;
  const i64 code_row = l.code_row_bytes(), item = dtype_bytes(rows.values.type, 1);
  const std::vector<u8> theirs =
      pattern_bytes(rows.how.pattern_codes, rows.first * code_row, (rows.first + rows.count) * code_row);
  const std::vector<u8> given = rows.decoded(theirs);
  if (std::ranges::equal(given, rows.value_bytes))
    return static_cast<void>(std::ranges::copy(theirs, rows.codes.begin()));
  auto take = [&](const std::vector<bool>& differs) {
    rows.each_part([&](i64 row, i64 block, i64 begin, i64 bytes) {
      if (!differs.empty() && differs[block]) return;
      for (i64 at = begin; at < begin + bytes; at += item)
        if (std::memcmp(given.data() + at, rows.value_bytes.data() + at, static_cast<std::size_t>(item)) == 0)
          copy_code(l, (at - row * rows.values.row_bytes) / item, theirs.data() + row * code_row,
                    rows.codes.data() + row * code_row);
    });
  };
  write_codes(rows);
  take({});
  const std::vector<bool> differs = keep_scales(rows);
  if (std::ranges::find(differs, true) == differs.end()) return;
  write_codes(rows);
  take(differs);
}

void RowCoder::write_codes(const Rows& rows) const {
  const u8* zeros = rows.zero_points.empty() ? nullptr : rows.zero_points.data();
  const QuantLosses losses = quantize(rows.how.layout, rows.first, rows.count, rows.values,
                                      rows.scales.data(), zeros, rows.codes.data());
  if (losses.nan > 0)
    throw Error(Code::kBadScale, "a scale of the quantised source gives no codes for finite values")
        .tensor(values_.name(rows.how.values))
        .expected("scales that are positive numbers")
        .found(cat("NaN as ", losses.nan, " quotients of value and scale in rows from ", rows.first));
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
// own. Returns which do.
std::vector<bool> RowCoder::keep_scales(const Rows& rows) const {
  const QuantLayout& l = rows.how.layout;
  const i64 one = dtype_bytes(l.scales, 1), blocks = std::ssize(rows.scales) / one;
  const std::vector<u8> again = rows.decoded(rows.codes);
  std::vector<bool> differs(static_cast<std::size_t>(blocks));
  i64 first_row = -1;
  rows.each_part([&](i64 row, i64 block, i64 begin, i64 bytes) {
    if (std::memcmp(again.data() + begin, rows.value_bytes.data() + begin, static_cast<std::size_t>(bytes)) ==
        0)
      return;
    differs[block] = true;
    if (first_row < 0) first_row = rows.first + row;
  });
  if (first_row < 0) return differs;
  if (!rows.how.rule)
    throw Error(Code::kBadScale,
                "values are not those of the quantised model, and mckpt makes no new scales for its scheme")
        .tensor(values_.name(rows.how.values))
        .expected("the values of the quantised source")
        .found(cat("other values, the first in row ", first_row))
        .help("quantise to blocks of FP8 or to MXFP4, whose scales can be made anew");
  std::vector<u8> fresh(rows.scales.size());
  make_scales(l, *rows.how.rule, rows.first, rows.count, rows.values, fresh.data());
  for (i64 b = 0; b < blocks; b++)
    if (differs[b])
      std::memcpy(rows.scales.data() + b * one, fresh.data() + b * one, static_cast<std::size_t>(one));
  return differs;
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
