#include "io/safetensors/layout.h"

#include <gtest/gtest.h>

#include <map>

#include "core/base/text.h"
#include "io/file/file.h"
#include "io/json/json.h"
#include "io/output/output_files.h"
#include "io/safetensors/original.h"
#include "io/safetensors/table.h"
#include "io/store/tensor_spec.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

using Specs = std::vector<TensorSpec>;

const std::vector<i64> kScalar = {}, kThree = {3}, kMatrix = {2, 3}, kNone = {0, 4};
const Specs kMixed = {{"b", DType::kBool, kThree},
                      {"a", DType::kBF16, kMatrix},
                      {"z", DType::kF32, kThree},
                      {"c", DType::kF32, kScalar},
                      {"e", DType::kI64, kNone}};

std::string fault(const Specs& specs) {
  return thrown_by([&] { SafetensorsLayout layout(specs); }).substr(0, 6);
}

SafetensorsOptions shards_of(i64 bytes) {
  SafetensorsOptions options;
  options.max_shard_bytes = bytes;
  return options;
}

// The bytes that the library writes for the same tensors (safetensors.torch.save 0.8.0).
TEST(SafetensorsLayout, IsTheReferenceWritersByteForByteAtItsAlignment) {
  SafetensorsOptions options;
  options.alignment = 8;
  SafetensorsLayout layout(kMixed, options);
  ASSERT_EQ(layout.files().size(), 1u);
  const std::string length("\x38\x01\0\0\0\0\0\0", 8);
  EXPECT_EQ(layout.files()[0].header,
            length +
                R"({"__metadata__":{"format":"pt"},"e":{"dtype":"I64","shape":[0,4],"data_offsets":[0,0]},)"
                R"("c":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
                R"("z":{"dtype":"F32","shape":[3],"data_offsets":[4,16]},)"
                R"("a":{"dtype":"BF16","shape":[2,3],"data_offsets":[16,28]},)"
                R"("b":{"dtype":"BOOL","shape":[3],"data_offsets":[28,31]}}     )");
}

TEST(SafetensorsLayout, OrdersTypesBySizeThenNames) {
  SafetensorsLayout layout(kMixed);
  EXPECT_EQ(layout.order(), (std::vector<i64>{4, 3, 2, 1, 0}));
  i64 data = static_cast<i64>(layout.files()[0].header.size());
  EXPECT_EQ(layout.files()[0].name, "model.safetensors");
  EXPECT_EQ(data % 64, 0);
  EXPECT_EQ(layout.offset(3), data);
  EXPECT_EQ(layout.offset(2), data + 4);
  EXPECT_EQ(layout.bytes(1), 12);
  EXPECT_EQ(layout.files()[0].bytes, data + 4 + 12 + 12 + 3);
  EXPECT_EQ(layout.index(), "");
}

TEST(SafetensorsLayout, GivesTheSameBytesForTheSameTensorsInAnyOrder) {
  Specs reversed(kMixed.rbegin(), kMixed.rend());
  EXPECT_EQ(SafetensorsLayout(reversed).files()[0].header, SafetensorsLayout(kMixed).files()[0].header);
}

TEST(SafetensorsLayout, IsAFileWithoutAnyTensor) {
  SafetensorsLayout layout(Specs{}, {.metadata = {}});
  ASSERT_EQ(layout.files().size(), 1u);
  EXPECT_EQ(layout.files()[0].header.substr(8, 3), "{} ");
  EXPECT_EQ(layout.files()[0].bytes, 64);
}

// The files are as huggingface_hub 2.4.0 makes them, split_state_dict_into_shards_factory(max_shard_size=20).
TEST(SafetensorsLayout, SplitsAsHuggingFaceDoes) {
  const std::vector<i64> sizes = {12, 4, 40, 4, 10, 2, 20, 20, 0, 21, 1};
  const std::vector<i32> files = {2, 2, 1, 2, 3, 3, 4, 6, 6, 5, 7};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < sizes.size(); i++) names.push_back(cat("t", i));
  Specs specs;
  for (std::size_t i = 0; i < sizes.size(); i++)
    specs.push_back({names[i], DType::kU8, std::span(sizes).subspan(i, 1)});
  SafetensorsLayout layout(specs, shards_of(20));
  ASSERT_EQ(layout.files().size(), 7u);
  EXPECT_EQ(layout.files()[0].name, "model-00001-of-00007.safetensors");
  JsonValue index = parse_json(layout.index());
  EXPECT_EQ(index.find("metadata")->find("total_size")->integer("total_size"), 134);
  for (std::size_t i = 0; i < sizes.size(); i++) {
    EXPECT_EQ(layout.file(static_cast<i64>(i)), files[i] - 1) << i;
    EXPECT_EQ(index.find("weight_map")->find(names[i])->string(names[i]),
              cat("model-0000", files[i], "-of-00007.safetensors"));
  }
  std::vector<i64> sums(7);
  for (std::size_t f = 0; f < 7; f++)
    sums[f] = layout.files()[f].bytes - static_cast<i64>(layout.files()[f].header.size());
  EXPECT_EQ(sums, (std::vector<i64>{40, 20, 12, 20, 21, 20, 1}));
}

TEST(SafetensorsLayout, WritesTheIndexAsPythonsJsonDoes) {
  Specs specs = {{"b", DType::kF32, kThree}, {"a\"", DType::kF32, kThree}};
  EXPECT_EQ(SafetensorsLayout(specs, shards_of(12)).index(),
            "{\n"
            "  \"metadata\": {\n"
            "    \"total_size\": 24\n"
            "  },\n"
            "  \"weight_map\": {\n"
            "    \"a\\\"\": \"model-00002-of-00002.safetensors\",\n"
            "    \"b\": \"model-00001-of-00002.safetensors\"\n"
            "  }\n"
            "}\n");
}

TEST(SafetensorsLayout, OneShardThatHoldsEverythingIsNotNumbered) {
  SafetensorsLayout layout(kMixed, shards_of(31));
  EXPECT_EQ(layout.files().size(), 1u);
  EXPECT_EQ(layout.files()[0].name, "model.safetensors");
  EXPECT_EQ(layout.index(), "");
  EXPECT_EQ(SafetensorsLayout(kMixed, shards_of(30)).files().size(), 2u);
}

// A file of the tensors a [3] of float32 and b [2, 3] of bfloat16, in an order and with spaces that this
// layout has not.
SafetensorsOriginal unusual_file() {
  return {{{"weights.safetensors", 8 + 192 + 24,
            R"({"b": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}, )"
            R"("a": {"dtype": "F32", "shape": [3], "data_offsets": [12, 24]}})"}},
          "",
          ""};
}

TEST(SafetensorsLayout, IsThatOfFilesWithTheSameTensors) {
  SafetensorsOriginal original = unusual_file();
  original.files[0].header.resize(192, ' ');
  Specs specs = {{"a", DType::kF32, kThree}, {"b", DType::kBF16, kMatrix}};
  std::optional<SafetensorsLayout> layout = SafetensorsLayout::like(specs, original);
  ASSERT_TRUE(layout);
  EXPECT_TRUE(layout->is_original());
  EXPECT_EQ(layout->offset(0), 8 + 192 + 12);
  EXPECT_EQ(layout->offset(1), 8 + 192);
  EXPECT_EQ(layout->order(), (std::vector<i64>{1, 0}));
  EXPECT_EQ(layout->files()[0].name, "weights.safetensors");
  EXPECT_EQ(layout->files()[0].header.substr(8), original.files[0].header);
  EXPECT_EQ(layout->output_files().size(), 1u);
  // Another type, another shape, a tensor more or less.
  EXPECT_FALSE(SafetensorsLayout::like(Specs{{"a", DType::kI32, kThree}, specs[1]}, original));
  EXPECT_FALSE(SafetensorsLayout::like(Specs{{"a", DType::kF32, kMatrix}, specs[1]}, original));
  EXPECT_FALSE(SafetensorsLayout::like(Specs{specs[0]}, original));
  EXPECT_FALSE(SafetensorsLayout::like(Specs{specs[0], specs[1], {"c", DType::kF32, kScalar}}, original));
  EXPECT_FALSE(SafetensorsLayout::like(specs, {}));
  // Names that lead elsewhere, and a header that is none.
  for (const char* name : {"../w.safetensors", "a/w.safetensors", ".safetensors", "w.json"}) {
    SafetensorsOriginal elsewhere = original;
    elsewhere.files[0].name = name;
    EXPECT_FALSE(SafetensorsLayout::like(specs, elsewhere)) << name;
  }
  original.files[0].bytes--;
  EXPECT_EQ(thrown_by([&] { SafetensorsLayout::like(specs, original); }).substr(0, 6), "MC1101");
}

TEST(SafetensorsLayout, WritesPairsOfFourBitFloatsAsTheFormatCountsThem) {
  SafetensorsLayout layout(Specs{{"w", DType::kF4x2, kMatrix}});
  EXPECT_NE(layout.files()[0].header.find("\"dtype\":\"F4\",\"shape\":[2,6],\"data_offsets\":[0,6]"),
            std::string::npos);
}

TEST(SafetensorsLayout, RefusesWhatTheFormatCannotHold) {
  EXPECT_EQ(fault({{"__metadata__", DType::kF32, kThree}}), "MC3005");
  EXPECT_EQ(fault({{"\xff", DType::kF32, kThree}}), "MC3005");
  EXPECT_EQ(fault({{"a", DType::kF32, kThree}, {"a", DType::kF16, kThree}}), "MC3005");
  EXPECT_EQ(fault({{"a", DType::kF4x2, kScalar}}), "MC3005");
  const std::vector<i64> eight = {8}, huge = {i64{1} << 61};
  EXPECT_EQ(fault({{"a", DType::kU8, huge}, {"b", DType::kU8, huge}}), "nothin");
  EXPECT_EQ(fault({{"a", DType::kF16, huge}, {"b", DType::kF16, huge}}), "MC0101");
  for (const DTypeInfo& info : all_dtypes()) {
    bool held = !info.safetensors.empty() || info.dtype == DType::kF4x2;
    EXPECT_EQ(fault({{"a", info.dtype, eight}}), held ? "nothin" : "MC3005") << info.name;
  }
}

// Names of every kind, in every file, are read again as they were given, where they were placed.
TEST(SafetensorsLayout, IsReadAsItWasWritten) {
  Specs specs = {{"plain", DType::kU8, kThree},
                 {"quote\"\\\n\x7f\xc3\xa9", DType::kU16, kThree},
                 {"", DType::kF32, kNone},
                 {"x", DType::kC64, kMatrix}};
  SafetensorsLayout layout(specs, shards_of(9));
  ASSERT_EQ(layout.files().size(), 2u);
  std::map<std::string, i64> found;
  for (std::size_t f = 0; f < layout.files().size(); f++) {
    std::vector<u8> bytes(layout.files()[f].header.begin(), layout.files()[f].header.end());
    bytes.resize(static_cast<std::size_t>(layout.files()[f].bytes));
    MemorySource source(bytes);
    SafetensorsTable table(source);
    for (i64 t = 0; t < table.size(); t++) {
      found[std::string(table.name(t))] = static_cast<i64>(f << 32) + table.offset(t);
      EXPECT_EQ(table.metadata().size(), 1u);
    }
  }
  ASSERT_EQ(found.size(), specs.size());
  for (std::size_t t = 0; t < specs.size(); t++) {
    i64 place =
        (static_cast<i64>(layout.file(static_cast<i64>(t))) << 32) + layout.offset(static_cast<i64>(t));
    EXPECT_EQ(found[std::string(specs[t].name)], place) << t;
  }
}

}  // namespace
}  // namespace mckpt::impl
