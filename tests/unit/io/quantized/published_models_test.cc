// Every tensor of test_data/quantized has the bits that the reference implementations read, whatever range of
// it is asked for; and the codes and scales that the named quantisers write.
#include <gtest/gtest.h>

#include <random>
#include <span>

#include "core/base/text.h"
#include "core/quantized/checks.h"
#include "core/quantized/dequantize.h"
#include "core/quantized/quantize.h"
#include "io/sums/sha256.h"
#include "quantized_files.h"

namespace mckpt::impl::published_models_test {
namespace {

using quantized_files::Held;
using quantized_files::Stored;
using quantized_files::Tensors;
using Bytes = std::vector<u8>;

const char* const kModels[] = {"deepseek_v3_128",   "deepseek_v31_ue8m0_f32",
                               "qwen3_bf16_scales", "qwen3_ue8m0_e8m0",
                               "qwen3_64_skiplist", "qwen3_5_moe_fused",
                               "gpt_oss",           "kimi_k2_int4",
                               "loose/fp8_block",   "loose/fp8_scalar",
                               "loose/mxfp4",       "loose/mxfp8",
                               "loose/nvfp4",       "loose/int"};

std::string opened(const std::string& model) {
  return model.starts_with("loose/") ? model + ".safetensors" : model;
}

std::string digest(std::span<const u8> bytes) {
  Sha256 sum;
  sum.update(bytes);
  return sum.hex_digest();
}

std::span<const u8> part(const Held* held, ByteRange range) {
  if (!held) return {};
  return std::span(held->bytes)
      .subspan(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.bytes()));
}

// The values [first, end), of no more bytes than stored_ranges names.
void put_items(const Stored& s, i64 first, i64 end, Bytes& values) {
  StoredRanges need = stored_ranges(s.layout, first, end);
  dequantize_items(s.layout, first, end, part(s.codes, need.codes), part(s.scales, need.scales),
                   part(s.zero_points, need.zero_points), DType::kBF16, values.data() + 2 * first);
}

i64 items_of(const QuantLayout& layout) { return layout.all_rows() * layout.columns; }

Bytes values_of(const Stored& s) {
  Bytes values(static_cast<std::size_t>(items_of(s.layout) * 2));
  put_items(s, 0, items_of(s.layout), values);
  return values;
}

// The same, in ranges that begin and end anywhere.
Bytes values_in_pieces(const Stored& s, std::mt19937& random) {
  Bytes values(static_cast<std::size_t>(items_of(s.layout) * 2));
  for (i64 first = 0; first < items_of(s.layout);) {
    i64 most = items_of(s.layout) - first,
        end = first + 1 + static_cast<i64>(random()) % std::min<i64>(most, 999);
    put_items(s, first, end, values);
    first = end;
  }
  return values;
}

// Values with the last two dimensions exchanged, matrix by matrix.
Bytes turned_values(const Stored& s) {
  Bytes values(static_cast<std::size_t>(items_of(s.layout) * 2));
  const QuantLayout& l = s.layout;
  for (i64 m = 0; m < l.matrices; m++) {
    StoredBytes at{s.codes->bytes.data() + m * l.rows * l.code_row_bytes(), l.code_row_bytes(),
                   s.scales->bytes.data() + m * l.scale_rows() * l.scale_row_bytes(), l.scale_row_bytes(),
                   nullptr};
    dequantize_turned(l, {m * l.rows, l.rows, 0, l.columns}, at, DType::kBF16,
                      values.data() + 2 * m * l.rows * l.columns, l.rows * 2);
  }
  return values;
}

TEST(PublishedModels, HaveTheValuesThatTheReferencesRead) {
  std::mt19937 random(22);
  i64 quantised = 0;
  for (std::string model : kModels) {
    Tensors tensors = quantized_files::read_tensors(opened(model));
    GoldenJson want = read_golden(cat("quantized/", model, ".expected.json"));
    for (const auto& [name, facts] : want["tensors"].members()) {
      Stored s = quantized_files::stored_as(tensors, name, want);
      if (!s.codes) {
        EXPECT_EQ(digest(tensors.at(name).bytes), facts["sha256"].string()) << model << " " << name;
        continue;
      }
      quantised++;
      ASSERT_EQ(layout_fault(s.layout), "");
      EXPECT_EQ(s.layout.all_rows() * s.layout.code_row_bytes(), static_cast<i64>(s.codes->bytes.size()))
          << name;
      Bytes values = values_of(s);
      EXPECT_EQ(digest(s.turned ? turned_values(s) : values), facts["sha256"].string())
          << model << " " << name;
      EXPECT_TRUE(values == values_in_pieces(s, random)) << model << " " << name;
    }
  }
  EXPECT_EQ(quantised, 163);
}

// Codes for values, with scales in the layout's type.
Bytes codes_for(const QuantLayout& l, const Bytes& values, const Bytes& scales, const Held* zero_points,
                QuantLosses& losses) {
  Bytes codes(static_cast<std::size_t>(l.all_rows() * l.code_row_bytes()), 0x55);
  losses = quantize(l, 0, l.all_rows(), {DType::kBF16, values.data(), l.columns * 2}, scales.data(),
                    zero_points ? zero_points->bytes.data() : nullptr, codes.data());
  return codes;
}

TEST(PublishedModels, GetTheirCodesBackWithTheirScales) {
  i64 quantised = 0;
  for (std::string model : kModels) {
    Tensors tensors = quantized_files::read_tensors(opened(model));
    GoldenJson want = read_golden(cat("quantized/", model, ".expected.json"));
    for (const auto& [name, facts] : want["tensors"].members()) {
      Stored s = quantized_files::stored_as(tensors, name, want);
      // Not a fixed point: scales at which values are infinite or subnormal in bf16.
      if (!s.codes || model == "loose/mxfp4" || name == "codes.weight") continue;
      quantised++;
      QuantLosses losses;
      Bytes codes = codes_for(s.layout, values_of(s), s.scales->bytes, s.zero_points, losses);
      EXPECT_FALSE(losses.any()) << model << " " << name;
      if (!s.layout.nibble_8_is_plus_zero) {
        EXPECT_TRUE(codes == s.codes->bytes) << model << " " << name;
        continue;
      }
      // ModelOpt writes 8 for what rounds to zero from below, reads +0, and would write 0.
      for (i64 i = 0; i < static_cast<i64>(codes.size()); i++)
        for (int shift : {0, 4}) {
          int was = s.codes->bytes[i] >> shift & 15, is = codes[i] >> shift & 15;
          ASSERT_TRUE(is == was || (was == 8 && is == 0)) << name << " byte " << i;
        }
    }
  }
  EXPECT_EQ(quantised, 161);
}

// The computation of a reference quantiser, in our words.
struct Quantiser {
  const char* name;
  ScaleRule rule;
  DType scales;
  i64 tensors;
};
const Quantiser kQuantisers[] = {
    {"slime tools/convert_hf_to_fp8.py block_fp8", ScaleRule::kAmax, DType::kF32, 47},
    {"Megatron-Bridge _quantize_fp8_2d_blocks with E8M0 scales", ScaleRule::kPowerOfTwo, DType::kF8E8M0, 43},
    {"torchao_floor", ScaleRule::kMxFloor, DType::kU8, 4},
};

TEST(PublishedModels, GetTheCodesAndScalesOfTheReferenceQuantisers) {
  for (const Quantiser& quantiser : kQuantisers) {
    i64 quantised = 0;
    for (std::string model : kModels) {
      GoldenJson want = read_golden(cat("quantized/", model, ".expected.json"));
      const GoldenJson* again = want.find(cat("requantised by ", quantiser.name));
      if (!again) continue;
      Tensors tensors = quantized_files::read_tensors(opened(model));
      for (const auto& [name, facts] : want["tensors"].members()) {
        Stored s = quantized_files::stored_as(tensors, name, want);
        if (!s.codes) continue;
        quantised++;
        Bytes values = values_of(s);
        QuantLayout l = s.layout;
        // The type of scales that the digests are of.
        l.scales = dtype_from_safetensors((*again)[s.scales_name]["dtype"].string());
        Bytes scales(static_cast<std::size_t>(l.matrices * l.scale_rows() * l.scale_row_bytes()));
        make_scales(l, quantiser.rule, 0, l.all_rows(), {DType::kBF16, values.data(), l.columns * 2},
                    scales.data());
        EXPECT_EQ(digest(scales), (*again)[s.scales_name]["sha256"].string()) << model << " " << name;
        QuantLosses losses;
        Bytes codes = codes_for(l, values, scales, nullptr, losses);
        EXPECT_EQ(digest(codes), (*again)[s.codes_name]["sha256"].string()) << model << " " << name;
      }
    }
    EXPECT_EQ(quantised, quantiser.tensors) << quantiser.name;
  }
}

TEST(PublishedModels, HaveOneRoundingWhereCompressedTensorsHasTwo) {
  Tensors tensors = quantized_files::read_tensors("loose/nvfp4.safetensors");
  GoldenJson want = read_golden("quantized/loose/nvfp4.expected.json");
  Stored s = quantized_files::stored_as(tensors, "modelopt_as_ct.weight", want);
  s.layout.tensor_rule = TensorScale::kDivide;
  EXPECT_EQ(digest(values_of(s)),
            want["alternatives"]["modelopt_as_ct.weight, one rounding"]["sha256"].string());
}

TEST(PublishedModels, HaveNanWhereCodesAreNan) {
  Tensors tensors = quantized_files::read_tensors("loose/fp8_nan.safetensors");
  GoldenJson want = read_golden("quantized/loose/fp8_nan.expected.json");
  Stored s = quantized_files::stored_as(tensors, "nan.weight", want);
  CodeFaults faults = count_code_faults(s.layout, 0, s.layout.rows, s.codes->bytes);
  EXPECT_EQ(faults.nan.count, 2);
  EXPECT_EQ(faults.nan.first, 0x7f);
  Bytes values = values_of(s);
  for (i64 i = 0; i < static_cast<i64>(values.size()); i += 2)
    if (values[i] == 0xc0 && values[i + 1] == 0x7f) values[i] = values[i + 1] = 0xff;  // torch's NaN
  EXPECT_EQ(digest(values), want["tensors"]["nan.weight"]["sha256"].string());
}

}  // namespace
}  // namespace mckpt::impl::published_models_test
