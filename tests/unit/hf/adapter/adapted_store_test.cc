// The view over a base and its adapter has, tensor by tensor, what PEFT's merge_and_unload makes of the two
// (test_data/adapters): for a base in bfloat16, and for the same base in float32.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "core/base/text.h"
#include "core/items/item_cast.h"
#include "core/items/shape.h"
#include "hf/adapter/adapted_store.h"
#include "io/file/bytes.h"
#include "io/store/store_files.h"
#include "io/sums/sha256.h"
#include "io/values/tensor_reader.h"
#include "tests/support/golden_json.h"
#include "tests/support/safetensors_text.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl::adapter_test {
namespace {

const std::string kData = MCKPT_TEST_DATA "/adapters/";
// All cases of the folder, with the number of tensors that the adapter changes.
struct Case {
  std::string name;
  i64 changed;
};
const Case kCases[] = {{"bias_all", 5},
                       {"dora", 2},
                       {"embedding_rounding", 1},
                       {"fan_in_fan_out", 3},
                       {"layers_to_transform", 2},
                       {"lora_bias", 4},
                       {"lora_bias_rounding", 2},
                       {"modules_to_save", 3},
                       {"patterns", 4},
                       {"plain", 6},
                       {"plain_rounding", 2},
                       {"random_values", 2},
                       {"rslora_patterns", 8},
                       {"target_parameters", 26},
                       {"target_parameters_rounding", 12}};

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

std::unique_ptr<Store> merged(const std::string& base, const std::string& adapter) {
  OpenOptions how;
  how.base = adapter_base(base);
  return open_store(adapter, how);
}

// The base in float32.
void widen(const std::string& base, const TempFolder& to) {
  std::unique_ptr<Store> store = open_store(base);
  std::string header = "{", data;
  for (i64 t = 0; t < store->tensor_count(); t++) {
    std::string shape;
    for (i64 d : store->dims(t)) shape += cat(shape.empty() ? "" : ",", d);
    std::vector<u8> narrow = bytes_of(*store, t);
    const i64 begin = std::ssize(data), items = store->shape(t).items();
    std::string wide(static_cast<std::size_t>(4 * items), '\0');
    cast_items({store->dtype(t), DType::kF32, DType::kF32}, narrow.data(), reinterpret_cast<u8*>(wide.data()),
               items);
    data += wide;
    header += cat(t > 0 ? "," : "", safetensors_entry(store->name(t), "F32", shape, begin, std::ssize(data)));
  }
  to.put("model.safetensors", safetensors_file(header + "}", data));
}

// How many steps from one value of the type to the next are between two values.
i64 steps(DType dtype, const u8* a, const u8* b) {
  auto place = [&](const u8* at) {
    i64 bits = dtype == DType::kF32 ? static_cast<i32>(load_le<u32>(at))
                                    : static_cast<std::int16_t>(load_le<u16>(at));
    i64 least = dtype == DType::kF32 ? i64{INT32_MIN} : i64{INT16_MIN};
    return bits < 0 ? least - bits : bits;
  };
  return std::abs(place(a) - place(b));
}

// Values that PEFT computes in another order of summation: at most one step of the type away, or one of the
// largest value, where terms cancel.
void expect_near(const Store& view, i64 t, const Store& values) {
  const i64 v = find_tensor(values, view.name(t)), items = view.shape(t).items();
  ASSERT_GE(v, 0);
  std::vector<u8> found = bytes_of(view, t), wide = bytes_of(values, v), expected(found.size());
  cast_items({DType::kF32, view.dtype(t), view.dtype(t)}, wide.data(), expected.data(), items);
  const i64 bytes = std::ssize(found) / items;
  float largest = 0;
  for (i64 i = 0; i < items; i++) largest = std::max(largest, std::abs(value_of(DType::kF32, &wide[4 * i])));
  for (i64 i = 0; i < items; i++) {
    const u8 *a = &found[i * bytes], *b = &expected[i * bytes];
    const bool cancelled =
        std::abs(value_of(view.dtype(t), a) - value_of(view.dtype(t), b)) <= largest * 0x1p-23f;
    ASSERT_TRUE(cancelled || steps(view.dtype(t), a, b) <= 1) << view.name(t) << " " << i;
  }
}

void expect_case(const Case& c, const std::string& base, const char* answers) {
  std::unique_ptr<Store> view = merged(base, cat(kData, c.name, "/adapter"));
  GoldenJson file = read_golden(cat("adapters/", c.name, ".expected.json"));
  const GoldenJson& expected = file[answers];
  ASSERT_EQ(view->tensor_count(), std::ssize(expected.members())) << c.name;
  std::vector<std::string> changed = file["changed"].strings();
  EXPECT_EQ(std::ssize(changed), c.changed) << c.name;
  std::unique_ptr<Store> values;
  if (!file["exact"].boolean()) values = open_store(cat(kData, c.name, ".expected.safetensors"));
  for (const auto& [name, answer] : expected.members()) {
    i64 t = find_tensor(*view, name);
    ASSERT_GE(t, 0) << c.name << " " << name;
    const bool is_changed = std::ranges::find(changed, name) != changed.end();
    EXPECT_EQ(adapted_view(*view)->adapted(t) != nullptr, is_changed) << c.name << " " << name;
    EXPECT_EQ(dtype_info(view->dtype(t)).safetensors, answer["dtype"].string()) << name;
    EXPECT_EQ(std::vector<i64>(view->dims(t).begin(), view->dims(t).end()), answer["shape"].integers())
        << name;
    if (values && is_changed)
      expect_near(*view, t, *values);
    else
      EXPECT_EQ(digest(bytes_of(*view, t)), answer["sha256"].string())
          << c.name << " " << answers << " " << name;
  }
}

TEST(AdaptedStore, HasWhatPeftMakesOfABaseInBfloat16) {
  for (const Case& c : kCases) expect_case(c, cat(kData, c.name, "/base"), "bf16");
}

TEST(AdaptedStore, HasWhatPeftMakesOfABaseInFloat32) {
  for (const Case& c : kCases) {
    TempFolder base;
    widen(cat(kData, c.name, "/base"), base);
    expect_case(c, base.path(), "f32");
  }
}

// Before they are rounded, the values over a base in bfloat16 are those that PEFT computes in float32.
TEST(AdaptedStore, HasItsValuesUnrounded) {
  for (const Case& c : kCases) {
    std::unique_ptr<Store> view = merged(cat(kData, c.name, "/base"), cat(kData, c.name, "/adapter"));
    GoldenJson file = read_golden(cat("adapters/", c.name, ".expected.json"));
    if (!file["exact"].boolean()) continue;
    const UnroundedValues* values = view->unrounded();
    ASSERT_NE(values, nullptr);
    for (i64 t = 0; t < view->tensor_count(); t++) {
      ChunkData data = values->resolve_unrounded(t, 0);
      EXPECT_EQ(values->is_rounded(t), adapted_view(*view)->adapted(t) != nullptr);
      EXPECT_EQ(data.dtype, DType::kF32);
      std::vector<u8> bytes(static_cast<std::size_t>(4 * view->shape(t).items()));
      data.unpacked->read(data.offset, bytes);
      EXPECT_EQ(digest(bytes), file["f32"][view->name(t)]["sha256"].string())
          << c.name << " " << view->name(t);
    }
  }
}

// Every range of bytes, also one that begins inside of a row or an item, is that part of the whole.
TEST(AdaptedStore, ReadsAnyRangeOfBytes) {
  std::mt19937 random(5);
  for (const char* name : {"dora", "fan_in_fan_out", "embedding_rounding", "target_parameters", "bias_all"}) {
    std::unique_ptr<Store> view = merged(cat(kData, name, "/base"), cat(kData, name, "/adapter"));
    for (i64 t = 0; t < view->tensor_count(); t++) {
      if (!adapted_view(*view)->adapted(t)) continue;
      const std::vector<u8> whole = bytes_of(*view, t);
      const ChunkData data = view->resolve(t, 0);
      for (int i = 0; i < 20; i++) {
        const i64 begin = random() % whole.size(), end = begin + random() % (whole.size() - begin) + 1;
        std::vector<u8> part(static_cast<std::size_t>(end - begin));
        data.unpacked->read(begin, part);
        ASSERT_TRUE(std::ranges::equal(part, std::span(whole).subspan(begin, end - begin))) << view->name(t);
      }
    }
  }
}

// A tensor of more than one piece (65,536 items) and a rank that is not a multiple of four, against a sum in
// double.
TEST(AdaptedStore, ComputesATensorOfManyPieces) {
  constexpr i64 kRows = 301, kColumns = 577, kRank = 7;
  std::mt19937 random(3);
  auto floats = [&](i64 n) {
    std::vector<float> out;
    for (i64 i = 0; i < n; i++) out.push_back(static_cast<float>(static_cast<int>(random() % 25) - 12) / 64);
    return out;
  };
  auto text = [](const std::vector<float>& v) {
    return std::string(reinterpret_cast<const char*>(v.data()), v.size() * 4);
  };
  const std::vector<float> w = floats(kRows * kColumns), a = floats(kRank * kColumns),
                           b = floats(kRows * kRank);
  TempFolder base, adapter;
  base.put(
      "model.safetensors",
      safetensors_file(
          cat("{", safetensors_entry("x.weight", "F32", "301,577", 0, 4 * kRows * kColumns), "}"), text(w)));
  const i64 split = 4 * kRank * kColumns;
  adapter.put(
      "adapter_model.safetensors",
      safetensors_file(
          cat("{", safetensors_entry("base_model.model.x.lora_A.weight", "F32", "7,577", 0, split), ",",
              safetensors_entry("base_model.model.x.lora_B.weight", "F32", "301,7", split,
                                split + 4 * kRows * kRank),
              "}"),
          text(a) + text(b)));
  adapter.put("adapter_config.json",
              R"({"peft_type": "LORA", "r": 7, "lora_alpha": 14, "target_modules": ["x"]})");
  std::unique_ptr<Store> view = merged(base.path(), adapter.path());
  const std::vector<u8> found = bytes_of(*view, 0);
  for (i64 i = 0; i < kRows; i++)
    for (i64 j = 0; j < kColumns; j++) {
      double sum = 0;
      for (i64 k = 0; k < kRank; k++) sum += double(b[i * kRank + k]) * a[k * kColumns + j];
      const float expected = w[i * kColumns + j] + static_cast<float>(sum * 2);
      ASSERT_EQ(std::bit_cast<float>(load_le<u32>(&found[4 * (i * kColumns + j)])), expected)
          << i << " " << j;
    }
}

}  // namespace
}  // namespace mckpt::impl::adapter_test
