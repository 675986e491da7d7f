// Names of schemes, as reports show them, and the shape that packed integers have in a tensor of their own.
#include "hf/quantized/scheme.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/items/shape.h"
#include "core/quantized/checks.h"
#include "io/file/bytes.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr i64 kLargestGroup = 256;  // of integers; a scale for more codes is one for a row

bool has_exponents(DType scales) { return scales == DType::kU8 || scales == DType::kF8E8M0; }

std::string kind_of(const QuantLayout& s, bool groups) {
  switch (s.codes) {
    case CodeFormat::kE4M3:
      return groups && has_exponents(s.scales) ? "mxfp8" : "fp8";
    case CodeFormat::kE5M2:
      return "fp8 e5m2";
    case CodeFormat::kE2M3:
      return "mxfp6";
    case CodeFormat::kE2M1:
      return has_exponents(s.scales) ? "mxfp4" : "nvfp4";
    case CodeFormat::kPackedInt:
    case CodeFormat::kInt8:
      return cat("int", s.int_bits);
  }
  return "";
}

}  // namespace

std::pair<i64, i64> packed_shape(DType type, std::span<const u8> bytes) {
  auto number = [&](int i) {
    return type == DType::kI64 ? static_cast<i64>(load_le<u64>(bytes.data() + 8 * i))
                               : static_cast<i64>(static_cast<i32>(load_le<u32>(bytes.data() + 4 * i)));
  };
  return {number(0), number(1)};
}

void refuse_other_shape(const Store& store, const QuantizedTensor& q, std::span<const u8> bytes) {
  auto [rows, columns] = packed_shape(store.dtype(q.shape), bytes);
  if (rows == q.dims[0] && columns == q.dims[1]) return;
  throw Error(Code::kQuantMisfit, "packed codes have another shape than they say")
      .tensor(store.name(q.shape))
      .file(file_path(store, store.chunk(q.shape, 0).file))
      .expected(dims_to_string(q.dims))
      .found(cat("[", rows, ", ", columns, "]"));
}

std::shared_ptr<const std::vector<i32>> groups_of_columns(const Store& store, const QuantizedTensor& q,
                                                          std::span<const u8> bytes) {
  std::vector<i32> groups(bytes.size() / 4);
  for (std::size_t c = 0; c < groups.size(); c++)
    groups[c] = static_cast<i32>(load_le<u32>(bytes.data() + 4 * c));
  if (std::ranges::all_of(groups, [](i32 g) { return g == -1; })) return nullptr;
  if (const std::string fault = group_fault(q.layout, groups); !fault.empty())
    throw Error(Code::kQuantMisfit, "the groups of columns do not fit the scales")
        .tensor(store.name(q.groups))
        .file(file_path(store, store.chunk(q.groups, 0).file))
        .expected(cat(counted(q.layout.scale_columns(), "group"), " of ", q.layout.block_columns,
                      " columns, or -1 for all columns"))
        .found(fault);
  return std::make_shared<const std::vector<i32>>(std::move(groups));
}

std::string scheme_text(const QuantLayout& s) {
  bool groups = s.block_rows == 1 && s.block_columns < s.columns;
  // A matrix that is one group wide has groups all the same.
  if (s.codes == CodeFormat::kE2M1 || s.codes == CodeFormat::kE2M3) groups = true;
  if (s.codes == CodeFormat::kPackedInt && s.block_columns <= kLargestGroup && s.block_rows == 1)
    groups = true;
  std::string kind = kind_of(s, groups);
  if (groups) return cat(kind, " groups of ", s.block_columns);
  if (s.block_rows == 1 && s.rows > 1) return cat(kind, " one scale a row");
  if (s.block_rows == s.rows && s.block_columns == s.columns) return cat(kind, " one scale a tensor");
  return cat(kind, " blocks ", s.block_rows, "x", s.block_columns);
}

}  // namespace mckpt::impl
