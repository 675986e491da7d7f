// Scales and codes that no writer means: a conversion is refused with the tensor, the file, the place and the
// numbers; commands that only show values show them; scales that are merely odd are reported.
#include "hf/quantized/value_faults.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "hf/quantized/dequantized_store.h"
#include "io/copy/lost_values.h"
#include "io/store/soundness.h"
#include "io/store/store_files.h"
#include "io/values/tensor_reader.h"
#include "made_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl::quantized_test {
namespace {

const std::string kFp8 = R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [2, 4]}})";
const std::string kRows =
    R"({"quantization_config": {"quant_method": "compressed-tensors", "format": "float-quantized",
  "config_groups": {"g": {"weights": {"num_bits": 8, "strategy": "channel"}}}}})";
const std::string kMx = R"({"quantization_config": {"quant_method": "mxfp4"}})";
const std::string kModelOpt =
    R"({"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}})";
const std::string kPacked = R"({"quantization_config": {"quant_method": "compressed-tensors",
  "format": "nvfp4-pack-quantized"}})";

template <typename T>
std::string bytes_of_numbers(const std::vector<T>& numbers) {
  return std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T));
}
std::string f32(const std::vector<float>& numbers) { return bytes_of_numbers(numbers); }

// `count` bytes, of which one is another.
std::string one_byte(std::size_t count, char all, std::size_t at, unsigned char other) {
  std::string out(count, all);
  out[at] = static_cast<char>(other);
  return out;
}

struct Made {
  Made(const std::vector<MadePart>& tensors, const std::string& config, BadNumbers bad,
       DType dtype = DType::kBF16) {
    put_model(folder, tensors, config);
    std::unique_ptr<Store> files = open_store(folder.path());
    QuantDeclaration declared = quant_declaration_of(*files);
    store = dequantized(std::move(files), declared, dtype, bad);
  }
  const DequantizedStore& view() const { return *dequantized_view(*store); }
  void read_all() const {
    StoreFiles files(*store);
    for (i64 t = 0; t < store->tensor_count(); t++)
      TensorReader(*store, files).read(t, [](std::span<const u8>, i64) {});
  }
  TempFolder folder;
  std::unique_ptr<Store> store;
};

struct Case {
  const char* what;
  std::string config;
  std::vector<MadePart> tensors;
  std::string tensor, words;
  bool zero = false;  // only odd
};

std::vector<Case> cases() {
  using D = DType;
  const MadePart codes{"w.weight", D::kF8E4M3, {3, 6}, std::string(18, '\x31')};  // 2 x 2 blocks
  const MadePart mx{"e.down_proj_blocks", D::kU8, {2, 3, 2, 16}, std::string(192, '\x12')};
  const MadePart nv{"w.weight", D::kU8, {2, 16}, std::string(32, '\x23')},
      nv_global{"w.weight_scale_2", D::kF32, {}, f32({.5f})};
  auto blocks = [&](std::vector<float> scales) {
    return std::vector<MadePart>{codes, {"w.weight_scale_inv", D::kF32, {2, 2}, f32(scales)}};
  };
  auto nvfp4 = [&](std::string scales, float global) {
    return std::vector<MadePart>{nv,
                                 {"w.weight_scale", D::kF8E4M3, {2, 2}, std::move(scales)},
                                 {"w.weight_scale_2", D::kF32, {}, f32({global})}};
  };
  const std::string usual(4, '\x38');
  return {
      {"NaN", kFp8, blocks({1, 2, NAN, 4}), "w.weight_scale_inv", "NaN: 1 of 4, the first at [1, 0]"},
      {"infinite", kFp8, blocks({1, INFINITY, 3, -INFINITY}), "w.weight_scale_inv",
       "infinite: 2 of 4, the first at [0, 1]"},
      {"negative", kFp8, blocks({1, 2, 3, -4}), "w.weight_scale_inv",
       "negative: 1 of 4, the first at [1, 1]"},
      {"zero", kFp8, blocks({1, 0, 3, -0.f}), "w.weight_scale_inv", "zero: 2 of 4, the first at [0, 1]",
       true},
      {"NaN in bf16",
       kFp8,
       {codes,
        {"w.weight_scale_inv", D::kBF16, {2, 2}, bytes_of_numbers<u16>({0x3f80, 0x3f80, 0x3f80, 0xffc1})}},
       "w.weight_scale_inv",
       "NaN: 1 of 4, the first at [1, 1]"},
      {"NaN in fp16",
       kFp8,
       {codes,
        {"w.weight_scale_inv", D::kF16, {2, 2}, bytes_of_numbers<u16>({0x3c00, 0x7e00, 0x3c00, 0x3c00})}},
       "w.weight_scale_inv",
       "NaN: 1 of 4, the first at [0, 1]"},
      {"NaN exponent",
       kFp8,
       {codes, {"w.weight_scale_inv", D::kF8E8M0, {2, 2}, one_byte(4, '\x7f', 2, 255)}},
       "w.weight_scale_inv",
       "NaN: 1 of 4, the first at [1, 0]"},
      {"NaN of a row",
       kRows,
       {codes, {"w.weight_scale", D::kF32, {3, 1}, f32({1, 2, NAN})}},
       "w.weight_scale",
       "NaN: 1 of 3, the first at [2, 0]"},
      {"infinite, of a tensor",
       "",
       {codes, {"w.weight_scale", D::kF32, {}, f32({INFINITY})}},
       "w.weight_scale",
       "infinite: 1 of 1, the first at []"},
      {"NaN codes",
       kFp8,
       {{"w.weight", D::kF8E4M3, {3, 6}, one_byte(18, '\x31', 13, 0x7f)},
        {"w.weight_scale_inv", D::kF32, {2, 2}, f32({1, 2, 3, 4})}},
       "w.weight",
       "codes of w.weight that are NaN: 1 of 18, the first at [2, 1]"},
      {"negative NaN codes",
       kFp8,
       {{"w.weight", D::kF8E4M3, {3, 6}, one_byte(18, '\x7f', 0, 0xff)},
        {"w.weight_scale_inv", D::kF32, {2, 2}, f32({1, 2, 3, 4})}},
       "w.weight",
       "codes of w.weight that are NaN: 18 of 18, the first at [0, 0]"},
      {"infinite codes of E5M2",
       "",
       {{"w.weight", D::kF8E5M2, {3, 6}, one_byte(18, '\x31', 17, 0xfc)},
        {"w.weight_scale", D::kF32, {}, f32({1})}},
       "w.weight",
       "codes of w.weight that are infinite: 1 of 18, the first at [2, 5]"},
      {"NaN of MXFP4",
       kMx,
       {mx, {"e.down_proj_scales", D::kU8, {2, 3, 2}, one_byte(12, '\x7f', 9, 255)}},
       "e.down_proj_scales",
       "NaN: 1 of 12, the first at [1, 1, 1]"},
      {"NaN of MXFP8",
       "",
       {{"w.weight", D::kF8E4M3, {2, 64}, std::string(128, '\x31')},
        {"w.weight_scale", D::kU8, {2, 2}, one_byte(4, '\x7f', 1, 255)}},
       "w.weight_scale",
       "NaN: 1 of 4, the first at [0, 1]"},
      {"NaN of NVFP4", kModelOpt, nvfp4(one_byte(4, '\x38', 3, 0x7f), .5f), "w.weight_scale",
       "NaN: 1 of 4, the first at [1, 1]"},
      {"negative, of NVFP4", kModelOpt, nvfp4(one_byte(4, '\x38', 2, 0xb8), .5f), "w.weight_scale",
       "negative: 1 of 4, the first at [1, 0]"},
      {"zero, of NVFP4", kModelOpt, nvfp4(one_byte(4, '\x38', 2, 0), .5f), "w.weight_scale",
       "zero: 1 of 4, the first at [1, 0]", true},
      {"NaN of the tensor", kModelOpt, nvfp4(usual, NAN), "w.weight_scale_2", "NaN: 1 of 1, the first at []"},
      {"zero of the tensor", kModelOpt, nvfp4(usual, 0), "w.weight_scale_2", "zero: 1 of 1, the first at []"},
      {"zero divisor",
       kPacked,
       {{"w.weight_packed", D::kU8, {2, 16}, std::string(32, '\x23')},
        {"w.weight_scale", D::kF8E4M3, {2, 2}, usual},
        {"w.weight_global_scale", D::kF32, {1}, f32({0})}},
       "w.weight_global_scale",
       "zero: 1 of 1, the first at [0]"},
      {"infinite, of integers",
       "",
       {{"w.weight_packed", D::kI32, {2, 4}},
        {"w.weight_scale", D::kBF16, {2, 1}, bytes_of_numbers<u16>({0x3f80, 0x7f80})},
        {"w.weight_shape", D::kI64, {2}, bytes_of_numbers<i64>({2, 32})}},
       "w.weight_scale",
       "infinite: 1 of 2, the first at [1, 0]"},
  };
}

TEST(ValueFaults, RefusesNumbersThatCannotBeMeant) {
  i64 refused = 0;
  for (const Case& c : cases()) {
    Made made(c.tensors, c.config, BadNumbers::kRefuse);
    ASSERT_TRUE(dequantized_view(*made.store)) << c.what;
    ASSERT_TRUE(is_sound(*made.store)) << c.what;
    std::string told = thrown_by([&] { made.read_all(); });
    if (c.zero) {
      EXPECT_EQ(told, "nothing") << c.what;
      continue;
    }
    refused++;
    EXPECT_EQ(told.substr(0, 6), "MC2017") << c.what << ": " << told;
    EXPECT_NE(told.find(cat("tensor '", c.tensor, "'")), std::string::npos) << c.what << ": " << told;
    EXPECT_NE(told.find(made.folder.path() + "/model.safetensors"), std::string::npos)
        << c.what << ": " << told;
    EXPECT_NE(told.find(c.words), std::string::npos) << c.what << ": " << told;
  }
  EXPECT_GE(refused, 19);
}

// One finding each, as a warning, whatever was read how often; and nothing is seen by those who only show
// values.
TEST(ValueFaults, ReportsWhatIsAccepted) {
  for (const Case& c : cases()) {
    Made made(c.tensors, c.config, c.zero ? BadNumbers::kRefuse : BadNumbers::kReport);
    made.read_all();
    made.read_all();
    std::vector<Finding> found = made.view().faults().findings(made.view().faults().marks());
    ASSERT_EQ(found.size(), 1u) << c.what;
    EXPECT_TRUE(found[0].warning);
    EXPECT_EQ(found[0].tensor, c.tensor) << c.what;
    EXPECT_EQ(found[0].file, "model.safetensors") << c.what;
    EXPECT_NE(found[0].message.find(c.words), std::string::npos) << c.what << ": " << found[0].message;
    Made shown(c.tensors, c.config, BadNumbers::kShow);
    EXPECT_EQ(thrown_by([&] { shown.read_all(); }), "nothing") << c.what;
    EXPECT_TRUE(shown.view().faults().findings(shown.view().faults().marks()).empty()) << c.what;
  }
}

// 448 and 0x7d (416) times 160: 71,680 and 66,560 are beyond fp16, 0x7c (384) times 160 is not.
TEST(ValueFaults, CountsFiniteNumbersThatBecomeInfinite) {
  std::vector<MadePart> tensors = {
      {"w.weight", DType::kF8E4M3, {2, 4}, std::string("\x7e\x7d\x7c\x00\xfe\x31\x31\x31", 8)},
      {"w.weight_scale_inv", DType::kF32, {1, 1}, f32({160})}};
  auto losses = [&](DType dtype) {
    Made made(tensors, kFp8, BadNumbers::kRefuse, dtype);
    made.read_all();
    LostValues lost;
    made.view().faults().add_losses(lost);
    return lost.total().infinite;
  };
  EXPECT_EQ(losses(DType::kF16), 3);
  EXPECT_EQ(losses(DType::kBF16), 0);
  EXPECT_EQ(losses(DType::kF32), 0);
}

}  // namespace
}  // namespace mckpt::impl::quantized_test
