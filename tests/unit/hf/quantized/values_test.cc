// The view over every published model of test_data/quantized has the tensors that the reference
// implementations read, whatever range of bytes is asked for; and codes and scales come back as they were
// where the scheme allows it.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "core/base/text.h"
#include "hf/quantized/dequantized_store.h"
#include "hf/quantized/quantized_store.h"
#include "io/copy/tensor_copy.h"
#include "io/store/store_files.h"
#include "io/sums/sha256.h"
#include "io/values/tensor_reader.h"
#include "made_folder.h"
#include "tests/support/golden_json.h"
#include "tests/support/throws.h"

namespace mckpt::impl::quantized_test {
namespace {

const std::string kData = MCKPT_TEST_DATA "/quantized/";
const char* const kModels[] = {"deepseek_v3_128",  "deepseek_v31_ue8m0_f32", "qwen3_bf16_scales",
                               "qwen3_ue8m0_e8m0", "qwen3_64_skiplist",      "qwen3_5_moe_fused",
                               "gpt_oss",          "kimi_k2_int4",           "deepseek_v4_fp4"};

std::vector<u8> bytes_of(const Store& store, i64 tensor) {
  StoreFiles files(store);
  std::vector<u8> out;
  TensorReader(store, files).read(tensor, [&](std::span<const u8> bytes, i64) {
    out.insert(out.end(), bytes.begin(), bytes.end());
  });
  return out;
}

std::string digest(std::span<const u8> bytes) {
  Sha256 sum;
  sum.update(bytes);
  return sum.hex_digest();
}

TEST(DequantizedStore, HasTheTensorsOfThePlainModel) {
  for (const std::string model : kModels) {
    std::unique_ptr<Store> view = open_values(kData + model, {});
    ASSERT_TRUE(dequantized_view(*view)) << model;
    GoldenJson file = read_golden(cat("quantized/", model, ".expected.json"));
    const GoldenJson& expected = file["tensors"];
    EXPECT_EQ(view->tensor_count(), std::ssize(expected.members())) << model;
    for (const auto& [name, answer] : expected.members()) {
      i64 t = find_tensor(*view, name);
      ASSERT_GE(t, 0) << model << " " << name;
      EXPECT_EQ(dtype_info(view->dtype(t)).safetensors, answer["dtype"].string()) << name;
      EXPECT_EQ(std::vector<i64>(view->dims(t).begin(), view->dims(t).end()), answer["shape"].integers())
          << name;
      EXPECT_EQ(digest(bytes_of(*view, t)), answer["sha256"].string()) << model << " " << name;
    }
  }
}

TEST(DequantizedStore, ReadsAnyRangeOfBytes) {
  std::mt19937 random(7);
  for (const std::string model : {"deepseek_v3_128", "gpt_oss", "kimi_k2_int4", "deepseek_v4_fp4"}) {
    std::unique_ptr<Store> view = open_values(kData + model, {});
    for (i64 t = 0; t < view->tensor_count(); t++) {
      ChunkData data = view->resolve(t, 0);
      if (!data.unpacked) continue;
      std::vector<u8> all = bytes_of(*view, t);
      for (int n = 0; n < 20; n++) {
        i64 begin = std::uniform_int_distribution<i64>(0, std::ssize(all) - 1)(random);
        i64 bytes = std::uniform_int_distribution<i64>(0, std::ssize(all) - begin)(random);
        std::vector<u8> part = data.unpacked->read(begin, bytes);
        ASSERT_TRUE(std::equal(part.begin(), part.end(), all.begin() + begin))
            << model << " " << view->name(t);
      }
    }
  }
}

TEST(DequantizedStore, RefusesAShapeThatIsNotThatOfTheCodes) {
  std::string shape(16, '\0');
  shape[0] = 6, shape[8] = 63;
  TempFolder folder;
  put_model(folder,
            {{"w.weight_packed", DType::kI32, {6, 8}},
             {"w.weight_scale", DType::kBF16, {6, 2}},
             {"w.weight_shape", DType::kI64, {2}, shape}},
            R"({"quantization_config": {"quant_method": "compressed-tensors", "config_groups":
               {"g": {"weights": {"num_bits": 4, "strategy": "group", "group_size": 32}}}}})");
  std::unique_ptr<Store> view = open_values(folder.path(), {});
  std::string told = thrown_by([&] { bytes_of(*view, 0); });
  EXPECT_EQ(told.substr(0, 6), "MC2016");
  EXPECT_NE(told.find("expected [6, 64], found [6, 63]"), std::string::npos) << told;
}

// Values whose scales came from bf16 weights are a fixed point; like their source all are.
TEST(QuantizedStore, GivesTheTensorsOfThePattern) {
  for (const std::string model : kModels) {
    std::unique_ptr<Store> files = open_store(kData + model);
    std::unique_ptr<Store> again =
        QuantizedStore::like(open_values(kData + model, {}), open_values(kData + model, {}));
    ASSERT_EQ(again->tensor_count(), files->tensor_count()) << model;
    for (i64 t = 0; t < files->tensor_count(); t++) {
      ASSERT_EQ(again->name(t), files->name(t));
      EXPECT_EQ(again->dtype(t), files->dtype(t)) << files->name(t);
      EXPECT_TRUE(std::ranges::equal(again->dims(t), files->dims(t))) << files->name(t);
      EXPECT_EQ(digest(bytes_of(*again, t)), digest(bytes_of(*files, t))) << model << " " << files->name(t);
    }
  }
}

TEST(QuantizedStore, MakesBlocksOfFp8ThatAreAFixedPoint) {
  std::unique_ptr<Store> files = open_store(kData + "deepseek_v3_128");
  std::unique_ptr<Store> made = QuantizedStore::fp8_blocks(open_values(kData + "deepseek_v3_128", {}));
  EXPECT_EQ(made->tensor_count(), files->tensor_count());
  for (i64 t = 0; t < files->tensor_count(); t++) {
    i64 m = find_tensor(*made, files->name(t));
    ASSERT_GE(m, 0) << files->name(t);
    EXPECT_EQ(digest(bytes_of(*made, m)), digest(bytes_of(*files, t))) << files->name(t);
  }
}

TEST(QuantizedStore, TellsACopyHowMuchItReads) {
  std::unique_ptr<QuantizedStore> made =
      QuantizedStore::fp8_blocks(open_values(kData + "deepseek_v3_128", {}));
  std::vector<TensorCopy::Place> places;
  for (i64 t = 0; t < made->tensor_count(); t++) places.push_back({.tensor = t, .offset = t << 30});
  const TensorCopy copy(*made, places);
  int scales = 0;
  for (i64 t = 0; t < made->tensor_count(); t++) {
    const bool scale = made->name(t).ends_with("_scale_inv");
    scales += scale;
    const i64 values = made->is_made(t) ? find_tensor(made->values(), made->made_of(t)) : -1;
    EXPECT_EQ(copy.task_bytes(t), TensorReader::tensor_bytes(*made, t)) << made->name(t);
    EXPECT_EQ(copy.task_work(t),
              values < 0 ? copy.task_bytes(t) : TensorReader::tensor_bytes(made->values(), values))
        << made->name(t);
  }
  EXPECT_GT(scales, 5);
}

TEST(QuantizedStore, MakesMxfp4OfTheSameValues) {
  std::unique_ptr<Store> plain = open_values(kData + "gpt_oss", {});
  std::unique_ptr<Store> files = open_store(kData + "gpt_oss");
  std::unique_ptr<Store> made = QuantizedStore::mxfp4(open_values(kData + "gpt_oss", {}));
  for (i64 t = 0; t < files->tensor_count(); t++) {
    i64 m = find_tensor(*made, files->name(t));
    ASSERT_GE(m, 0) << files->name(t);
    EXPECT_TRUE(std::ranges::equal(made->dims(m), files->dims(t))) << files->name(t);
    // A block whose largest value is small may have a smaller scale: few bytes differ.
    std::vector<u8> a = bytes_of(*made, m), b = bytes_of(*files, t);
    i64 differ = 0;
    for (std::size_t i = 0; i < a.size(); i++) differ += a[i] != b[i];
    EXPECT_LE(differ * 50, std::ssize(a)) << files->name(t);
  }
  QuantizedModel model = recognise(*made, {});
  EXPECT_EQ(model.tensors.size(), 4u);
  EXPECT_TRUE(model.findings.empty());
}

}  // namespace
}  // namespace mckpt::impl::quantized_test
