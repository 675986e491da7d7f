// Codes of less than a byte: MXFP4 of gpt-oss and of DeepSeek-V4's experts, NVFP4 of ModelOpt, and what
// compressed-tensors packs but for codes of six bits (mxfp6.cc).
#include <algorithm>
#include <charconv>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "hf/quantized/parts.h"
#include "io/file/bytes.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/values/tensor_reader.h"

namespace mckpt::impl {
namespace {

constexpr i64 kNvGroup = 16;

// Whether the config has integers of so many bits, or of none that it names.
bool may_have_bits(const QuantConfig* config, i64 bits) {
  bool named = false;
  for (const QuantConfig::Weights& w : config ? config->weights : std::vector<QuantConfig::Weights>()) {
    if (w.type == "float" || w.bits == 0) continue;
    if (w.bits == bits) return true;
    named = true;
  }
  return !named;
}

QuantLayout packed_layout(QuantLayout layout, i64 bits, bool whole_codes) {
  layout.int_bits = static_cast<int>(bits), layout.whole_codes = whole_codes;
  return layout;
}

// The bits by which so many words hold the row. Throws if there is more than one number. A packing without
// waste goes first, as long as the config names no bits: by the other, a row of 7 bits has the words of 8.
i64 bits_of(const PartFinder& parts, const QuantizedTensor& q, i64 words) {
  const bool named = !may_have_bits(parts.config(), 0);
  i64 found = 0;
  for (const bool whole_codes : {false, true}) {
    if (found > 0 && !named) break;
    for (i64 bits = 2; bits <= 8; bits++)
      if (packed_layout(q.layout, bits, whole_codes).words_of(q.layout.columns) == words &&
          may_have_bits(parts.config(), bits) && bits != found) {
        if (found > 0)
          parts.misfit(q.codes, "the width of a code is not known", "quantization_config with num_bits",
                       cat(found, " or ", bits, " bits"));
        found = bits;
      }
  }
  return found;
}

// Whether the config says that its version of compressed-tensors packed whole codes only: the last one was
// 0.17.1. Nothing for a version that nobody knows, as one of a night between two releases.
std::optional<bool> whole_codes_of(const std::string& version) {
  i64 part[3] = {0, 0, 0};
  const char* at = version.data();
  const char* end = at + version.size();
  for (i64& number : part) {
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc()) break;
    at = next;
    if (at == end || *at != '.') break;
    at++;
  }
  if (part[0] == 0 && part[1] == 0) return std::nullopt;
  if (part[0] > 0 || part[1] >= 18) return false;
  if (part[1] == 17 && part[2] > 1) return std::nullopt;
  return true;
}

// Sets which of the two packings the codes and their zero points have, by their words; where both fit, by the
// version. Throws if neither says it. Codes in one word are in the same places.
void set_packing(const PartFinder& parts, QuantizedTensor& q, i64 words) {
  QuantLayout& l = q.layout;
  const i64 each = 32 / l.int_bits;
  if (each * l.int_bits == 32) return;
  const i64 zeros = parts.find(cat(q.name, "_zero_point"));
  const bool packed_zeros = zeros >= 0 && parts.store().dtype(zeros) == DType::kI32;
  const PartFinder::Dims z = packed_zeros ? parts.dims(zeros) : PartFinder::Dims{};
  auto fits = [&](bool whole_codes) {
    const QuantLayout one = packed_layout(l, l.int_bits, whole_codes);
    return one.words_of(l.columns) == words && (z.size() != 2 || one.words_of(l.rows) == z[0]);
  };
  const bool dense = fits(false), whole = fits(true);
  if (dense != whole) {
    l.whole_codes = whole;
    return;
  }
  if (!dense || (l.columns <= each && (z.size() != 2 || l.rows <= each))) return;
  const QuantConfig* config = parts.config();
  const std::optional<bool> said = whole_codes_of(config ? config->version : "");
  if (!said)
    parts.misfit(q.codes,
                 cat("compressed-tensors packs codes of ", l.int_bits,
                     " bits in two ways, and the number of words fits both"),
                 "quantization_config with the version of compressed-tensors: up to 0.17.1, or from 0.18 on",
                 config && !config->version.empty() ? escaped(config->version) : "no version");
  l.whole_codes = *said;
}

// Rows and columns, which are read.
std::pair<i64, i64> shape_of(const PartFinder& parts, i64 tensor) {
  StoreFiles files(parts.store());
  std::vector<u8> bytes;
  TensorReader(parts.store(), files).read(tensor, [&](std::span<const u8> b, i64) {
    bytes.insert(bytes.end(), b.begin(), b.end());
  });
  std::pair<i64, i64> shape = packed_shape(parts.store().dtype(tensor), bytes);
  if (shape.first < 0 || shape.second < 0 || shape.second > (i64{1} << 40))
    parts.misfit(tensor, "the shape of packed codes has an impossible number", "rows and columns",
                 cat("[", shape.first, ", ", shape.second, "]"));
  return shape;
}

// The shapes that scales may have, for messages: one for each group of a row, or one for each block that the
// config declares.
std::string grids_of(const QuantConfig* config, const QuantLayout& l) {
  std::string out;
  bool groups = !config || config->weights.empty();
  for (const QuantConfig::Weights& w : config ? config->weights : std::vector<QuantConfig::Weights>()) {
    if (w.block_rows == 0)
      groups = true;
    else
      out += cat(out.empty() ? "" : " or ",
                 dims_to_string(
                     PartFinder::Dims{ceil_div(l.rows, w.block_rows), ceil_div(l.columns, w.block_columns)}));
  }
  return cat(groups ? cat("[", l.rows, ", groups]", out.empty() ? "" : " or ") : "", out);
}

// Whether the scales are of blocks.
bool set_integers(const PartFinder& parts, QuantizedTensor& q) {
  PartFinder::Dims d = parts.dims(q.codes), s = parts.dims(q.scales);
  QuantLayout& l = q.layout;
  if (d.size() != 2)
    parts.misfit(q.codes, "packed codes are not a matrix", "2 dimensions", dims_to_string(d));
  const bool one = Shape(s).items() == 1 && (d[0] > 1 || s.size() < 2);
  const QuantConfig* config = parts.config();
  auto misfit_of_scales = [&] {
    parts.misfit(q.scales, "the shape does not fit the packed codes", grids_of(config, l), dims_to_string(s));
  };
  const bool blocks =
      config && std::ranges::any_of(config->weights, [](const auto& w) { return w.block_rows > 0; });
  l.rows = d[0];
  if (!one && !blocks && (s.size() != 2 || s[0] != d[0])) misfit_of_scales();
  const QuantConfig::Weights* w = config && config->weights.size() == 1 ? &config->weights[0] : nullptr;
  i64 bits = w ? w->bits : 0, group = w && w->strategy == "group" ? w->group_size : 0;
  l.columns = bits > 0 ? d[1] * 32 / bits : 0;
  if (group == 0 || one || s.size() != 2 || l.columns != s[1] * group) {
    auto [rows, columns] = shape_of(parts, q.shape);
    if (rows != l.rows)
      parts.misfit(q.shape, "the shape has other rows than the codes", cat(l.rows), cat(rows));
    l.columns = columns;
  }
  if (bits == 0) bits = bits_of(parts, q, d[1]);
  if (bits != 0 && (bits < 2 || bits > 8))
    parts.misfit(q.codes, "packed codes of so few or many bits are not read", "2 to 8 bits",
                 cat(bits, bits == 1 ? " bit" : " bits"));
  if (bits > 0) {
    l.int_bits = static_cast<int>(bits);
    set_packing(parts, q, d[1]);
  }
  if (bits == 0)
    parts.misfit(q.codes, cat("no possible width makes ", l.columns, " codes fill the words of a row"),
                 config ? "the num_bits that the config has" : "2 to 8 bits", dims_to_string(d));
  if (l.words_of(l.columns) != d[1])
    parts.misfit(q.codes, cat("the words of a row do not hold ", l.columns, " codes of ", bits, " bits"),
                 dims_to_string(PartFinder::Dims{l.rows, ceil_div(l.columns * bits, 32)}), dims_to_string(d));
  q.dims = {l.rows, l.columns};
  if (set_one_scale(parts, q)) return false;
  if (set_block(parts, q)) return true;
  if (s.size() != 2 || s[0] != d[0]) misfit_of_scales();
  if (group == 0)
    group = s[1] <= 1 ? std::max<i64>(l.columns, 1) : l.columns % s[1] == 0 ? l.columns / s[1] : 0;
  if (group == 0)
    parts.misfit(q.scales, cat("groups of one size do not fill ", l.columns, " columns"),
                 "a number that divides them", cat(s[1]));
  parts.set_groups(q, group);
  return false;
}

void set_zero_points(const PartFinder& parts, QuantizedTensor& q, bool of_blocks) {
  q.zero_points = parts.find(cat(q.name, "_zero_point"));
  if (q.zero_points < 0) return;
  // Zero points of the whole tensor, or of blocks, are not packed.
  if (of_blocks || q.layout.block_rows != 1 || parts.dims(q.scales).size() < 2)
    return set_zero_point_bytes(parts, q);
  q.layout.zero_points = true;
  parts.expect_dtype(q.zero_points, {DType::kI32});
  parts.expect_dims(q.zero_points, {q.layout.zero_point_word_rows(), q.layout.scale_columns()},
                    "one zero point for each scale, packed along the rows");
}

void check_tensor_scale(const PartFinder& parts, const QuantizedTensor& q) {
  parts.expect_dtype(q.tensor_scale, {DType::kF32});
  if (Shape(parts.dims(q.tensor_scale)).items() != 1)
    parts.misfit(q.tensor_scale, "a scale of the tensor is not one number", "[] or [1]",
                 dims_to_string(parts.dims(q.tensor_scale)));
}

// Floats of less than a byte in compressed-tensors' spelling: two E2M1 codes a byte of NVFP4, or of MXFP4
// without a scale of the tensor; MXFP6.
QuantizedTensor packed_floats(const PartFinder& parts, QuantizedTensor q) {
  if (q.layout.scales != DType::kF8E4M3) {
    parts.expect_dtype(q.scales, {DType::kU8, DType::kF8E8M0});
    if (is_mxfp6(parts, q)) return mxfp6_weight(parts, std::move(q));
    parts.set_matrix(q, 2);
    parts.set_groups(q, PartFinder::kMxGroup);
    return q;
  }
  parts.set_matrix(q, 2);
  q.tensor_scale = parts.find(cat(q.name, "_global_scale"));
  if (q.tensor_scale < 0)
    parts.misfit(q.codes, "NVFP4 codes have no scale of the tensor",
                 cat("a tensor ", escaped(q.name), "_global_scale"), "no such tensor");
  // A number without dimensions makes compressed-tensors round the quotient of the scales to bfloat16.
  q.layout.tensor_rule =
      parts.dims(q.tensor_scale).empty() ? TensorScale::kDivideToBf16 : TensorScale::kDivide;
  check_tensor_scale(parts, q);
  parts.set_groups(q, kNvGroup);
  return q;
}

}  // namespace

// Codes [E, rows, groups, 16]; the bf16 release has the tensor with its last dimensions exchanged.
std::optional<QuantizedTensor> mxfp4_blocks(const PartFinder& parts, i64 t) {
  std::string_view name = parts.store().name(t);
  name.remove_suffix(std::string_view("_blocks").size());
  i64 scales = parts.find(cat(name, "_scales"));
  if (scales < 0) {
    if (parts.config() && parts.config()->method == QuantMethod::kMxfp4)
      parts.misfit(t, "codes have no scales", cat("a tensor ", escaped(name), "_scales"), "no such tensor");
    return std::nullopt;
  }
  QuantizedTensor q = parts.made(CodeFormat::kE2M1, name, t, scales);
  parts.expect_dtype(t, {DType::kU8});
  parts.expect_dtype(scales, {DType::kU8, DType::kF8E8M0});
  PartFinder::Dims d = parts.dims(t);
  if (d.size() != 4 || d[3] != PartFinder::kMxGroup / 2)
    parts.misfit(t, "the blocks of MXFP4 have another shape", "[experts, rows, groups, 16]",
                 dims_to_string(d));
  parts.expect_dims(scales, {d[0], d[1], d[2]}, "one scale for the 16 bytes of a block");
  q.layout.matrices = d[0], q.layout.rows = d[1], q.layout.columns = d[2] * PartFinder::kMxGroup;
  q.layout.block_columns = PartFinder::kMxGroup;
  q.turned = true;
  q.dims = {d[0], q.layout.columns, d[1]};
  if (parts.find(q.name) >= 0)
    parts.misfit(parts.find(q.name), "the values are there beside their codes", "one of them", "both");
  return q;
}

// The experts of DeepSeek-V4, as a matrix each, or in a stack.
std::optional<QuantizedTensor> fp4_weight(const PartFinder& parts, i64 t) {
  const std::string_view name = parts.store().name(t);
  const i64 scales = parts.module_scale(name);
  if (scales < 0) return std::nullopt;
  QuantizedTensor q = parts.made(CodeFormat::kE2M1, name, t, scales);
  parts.expect_dtype(scales, {DType::kU8, DType::kF8E8M0});
  parts.set_matrix(q, 2);
  parts.set_groups(q, PartFinder::kMxGroup);
  return q;
}

std::optional<QuantizedTensor> nvfp4_weight(const PartFinder& parts, i64 t) {
  const std::string_view name = parts.store().name(t);
  i64 scales = parts.find(cat(name, "_scale")), global = parts.find(cat(name, "_scale_2"));
  if (scales < 0 && global < 0) return std::nullopt;
  if (scales < 0 || global < 0)
    parts.misfit(t, "NVFP4 codes have only one of their two scales",
                 cat(escaped(name), "_scale and ", escaped(name), "_scale_2"),
                 escaped(parts.store().name(scales < 0 ? global : scales)));
  QuantizedTensor q = parts.made(CodeFormat::kE2M1, name, t, scales);
  q.tensor_scale = global;
  q.layout.tensor_rule = TensorScale::kTimes, q.layout.nibble_8_is_plus_zero = true;
  parts.expect_dtype(scales, {DType::kF8E4M3});
  parts.set_matrix(q, 2);
  check_tensor_scale(parts, q);
  parts.set_groups(q, kNvGroup);
  return q;
}

// Integers, NVFP4 or MXFP4, by the type of the codes.
std::optional<QuantizedTensor> packed_weight(const PartFinder& parts, i64 t) {
  std::string_view weight = parts.store().name(t);
  weight.remove_suffix(std::string_view("_packed").size());
  i64 scales = parts.find(cat(weight, "_scale"));
  if (scales < 0)
    parts.misfit(t, "codes have no scales", cat("a tensor ", escaped(weight), "_scale"), "no such tensor");
  if (parts.store().dtype(t) == DType::kU8)
    return packed_floats(parts, parts.made(CodeFormat::kE2M1, weight, t, scales));
  parts.expect_dtype(t, {DType::kI32});
  QuantizedTensor q = parts.made(CodeFormat::kPackedInt, weight, t, scales);
  parts.expect_dtype(scales, {DType::kBF16, DType::kF16, DType::kF32});
  q.layout.product_is_f16 = q.layout.scales == DType::kF16;
  q.shape = parts.find(cat(weight, "_shape"));
  if (q.shape < 0)
    parts.misfit(t, "packed codes have no shape", cat("a tensor ", escaped(weight), "_shape"),
                 "no such tensor");
  parts.expect_dtype(q.shape, {DType::kI64, DType::kI32});
  parts.expect_dims(q.shape, {2}, "rows and columns");
  const bool of_blocks = set_integers(parts, q);
  set_zero_points(parts, q, of_blocks);
  return q;
}

}  // namespace mckpt::impl
