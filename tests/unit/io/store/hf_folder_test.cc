#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/text.h"
#include "core/items/shape.h"
#include "io/store/store.h"
#include "tests/support/safetensors_text.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

constexpr const char* kFirst = "model-00001-of-00002.safetensors";
constexpr const char* kSecond = "model-00002-of-00002.safetensors";

// A file of one-byte tensors of these names.
std::string bytes_file(std::vector<std::string> names) {
  std::string header = "{", data;
  for (const std::string& name : names) {
    i64 at = static_cast<i64>(data.size());
    header += cat(at ? "," : "", safetensors_entry(name, "U8", "1", at, at + 1));
    data += 'd';
  }
  return safetensors_file(header + "}", data);
}

class HfFolder : public ::testing::Test {
 protected:
  void index(std::string_view weight_map, std::string_view total_size = "3") {
    folder.put("model.safetensors.index.json",
               cat("{\"metadata\":{\"total_size\":", total_size, "},\"weight_map\":{", weight_map, "}}"));
  }
  void two_shards() {
    folder.put(kFirst, bytes_file({"a", "b"}));
    folder.put(kSecond, bytes_file({"c"}));
    index(cat("\"c\":\"", kSecond, "\",\"a\":\"", kFirst, "\",\"b\":\"", kFirst, "\""));
  }
  // The names in the order of the store, and then each finding: "a b c | problem MC1107 b: ..."
  std::string opened() {
    std::unique_ptr<Store> store;
    std::string failure = thrown_by([&] { store = open_store(folder.path()); });
    if (!store) return failure;
    std::string out;
    for (i64 t = 0; t < store->tensor_count(); t++) out += cat(t ? " " : "", store->name(t));
    for (const Finding& f : store->findings())
      out += cat(" | ", f.warning ? "warning " : "problem ", code_name(f.code), " ", f.tensor, " ", f.file,
                 ": ", f.message);
    return out;
  }

  TempFolder folder;
};

TEST_F(HfFolder, IsReadThroughItsIndex) {
  two_shards();
  EXPECT_EQ(opened(), "a b c");
}

TEST_F(HfFolder, IsNotLoadedByTransformersWithoutMetadataInItsIndex) {
  two_shards();
  for (const char* metadata : {"", "\"metadata\":null,", "\"metadata\":[],"}) {
    folder.put("model.safetensors.index.json", cat("{", metadata, "\"weight_map\":{\"c\":\"", kSecond,
                                                   "\",\"a\":\"", kFirst, "\",\"b\":\"", kFirst, "\"}}"));
    EXPECT_NE(opened().find(
                  "a b c | warning MC1105  model.safetensors.index.json: the index has no object 'metadata'"),
              std::string::npos)
        << opened();
  }
  folder.put("model.safetensors.index.json", cat("{\"metadata\":{},\"weight_map\":{\"c\":\"", kSecond,
                                                 "\",\"a\":\"", kFirst, "\",\"b\":\"", kFirst, "\"}}"));
  EXPECT_EQ(opened(), "a b c");
}

TEST_F(HfFolder, IsRefusedWithTwoModelsThatDiffer) {
  two_shards();
  folder.put("model.safetensors", bytes_file({"a", "b", "c"}));
  EXPECT_EQ(
      opened(),
      cat("a b c | warning MC1114  model.safetensors: the folder holds two models, model.safetensors and the "
          "shards that model.safetensors.index.json names, with equal tensors: the shards are read"));
  folder.put("model.safetensors", bytes_file({"a", "b"}));
  EXPECT_EQ(opened().substr(0, 6), "MC1114");
  EXPECT_NE(opened().find("'c' is in the shards alone"), std::string::npos) << opened();
  folder.put("model.safetensors", "no model");
  EXPECT_NE(opened().find("model.safetensors cannot be read"), std::string::npos) << opened();
  index(cat("\"a\":\"model.safetensors\",\"b\":\"model.safetensors\""));
  folder.put("model.safetensors", bytes_file({"a", "b"}));
  EXPECT_EQ(opened().substr(0, 4), "a b ");  // the index names it: it is the model
}

// The cost of a hundred thousand names of files that are not there is bounded.
TEST_F(HfFolder, TellsFiftyOfTheMissingShards) {
  std::string names;
  for (int i = 0; i < 60; i++) names += cat(i ? "," : "", "\"", i, "\":\"", i, ".safetensors\"");
  index(names);
  std::unique_ptr<Store> store = open_store(folder.path());
  EXPECT_EQ(std::ranges::count(store->findings(), Code::kShardMissing, &Finding::code), 51);
  EXPECT_EQ(store->files().size(), 60u);
}

TEST_F(HfFolder, KeepsTheRestWhenAShardIsMissing) {
  two_shards();
  std::filesystem::remove(folder.at(kFirst));
  EXPECT_EQ(opened(),
            cat("c | problem MC1106  ", kFirst, ": the shard is missing",
                " | warning MC1107  model.safetensors.index.json: 2 of 3 tensors are in files that are "
                "missing or cannot be read"));
}

TEST_F(HfFolder, KeepsTheRestWhenAShardIsCut) {
  two_shards();
  std::filesystem::resize_file(folder.at(kFirst), std::filesystem::file_size(folder.at(kFirst)) - 1);
  EXPECT_EQ(opened().substr(0, 60), cat("c | problem MC1101  ", kFirst, ": the file is").substr(0, 60));
}

TEST_F(HfFolder, TellsTensorsThatLieElsewhereThanTheIndexSays) {
  two_shards();
  index(cat("\"c\":\"", kFirst, "\",\"a\":\"", kFirst, "\",\"b\":\"", kFirst, "\",\"d\":\"", kSecond, "\""));
  std::string not_there = ": the tensor is not in the shard that the index names";
  EXPECT_EQ(opened(), cat("a b c | problem MC1107 c ", kFirst, not_there, "; it is in ", kSecond,
                          " | problem MC1107 d ", kSecond, not_there));
}

TEST_F(HfFolder, TellsTensorsInTwoShardsAndUsesTheIndexs) {
  two_shards();
  folder.put(kSecond, bytes_file({"b", "c"}));
  index(cat("\"a\":\"", kFirst, "\",\"b\":\"", kFirst, "\",\"c\":\"", kSecond, "\""), "4");
  EXPECT_EQ(opened(), cat("a b c | problem MC1107 b ", kSecond,
                          ": the tensor is in two shards (duplicate): also in ", kFirst));
}

TEST_F(HfFolder, WarnsOfUnlistedTensorsUnusedFilesAndAWrongTotal) {
  two_shards();
  index(cat("\"a\":\"", kFirst, "\",\"c\":\"", kSecond, "\""), "99");
  folder.put("left-over.safetensors", bytes_file({"x"}));
  EXPECT_EQ(
      opened(),
      cat("a c b | warning MC1107 b ", kFirst,
          ": the index does not name this file for the tensor (not listed)",
          " | warning MC1109  model.safetensors.index.json: metadata.total_size is 99, the shards hold 3 "
          "bytes",
          " | warning MC1108  left-over.safetensors: the file left-over.safetensors is not referenced: it is "
          "not part of the model (unused)"));
}

TEST_F(HfFolder, TakesATotalSizeThatIsNoNumberOfBytesAsOdd) {
  for (const char* total : {"1e300", "-1", "3.5", "\"3\"", "null", "4611686018427387904"}) {
    two_shards();
    index(cat("\"a\":\"", kFirst, "\",\"b\":\"", kFirst, "\",\"c\":\"", kSecond, "\""), total);
    EXPECT_EQ(opened().substr(0, 23), "a b c | warning MC1109 ") << total;
  }
}

TEST_F(HfFolder, RefusesAnIndexThatIsNone) {
  two_shards();
  struct Case {
    std::string text, expected;
  };
  const Case cases[] = {
      {"[]", "MC1003"},
      {"{\"metadata\":{\"total_size\":1e999},\"weight_map\":{}}", "MC1003"},
      {"{}", "MC1105"},
      {"{\"weight_map\":[]}", "MC1105"},
      {"{\"weight_map\":{\"a\":{}}}", "MC1105"},
      {"{\"weight_map\":{\"a\":\"config.json\"}}", "MC1105"},
      {"{\"weight_map\":{},\"weight_map\":{}}", "MC1003"},
      {"{\"weight_map\":{\"a\":\"../x.safetensors\"}}", "MC1004"},
      {"{\"weight_map\":{\"a\":\"/etc/passwd\"}}", "MC1004"},
      {"{\"weight_map\":{\"a\":\"..\\\\x.safetensors\"}}", "MC1004"},
      {"{\"weight_map\":{\"a\":\"x\\u0000.safetensors\"}}", "MC1004"},
  };
  for (const Case& c : cases) {
    folder.put("model.safetensors.index.json", c.text);
    EXPECT_EQ(opened().substr(0, 6), c.expected) << c.text;
  }
}

TEST_F(HfFolder, NeedsNoIndexForASingleFile) {
  folder.put("model.safetensors", bytes_file({"a"}));
  EXPECT_EQ(opened(), "a");
  folder.put("adapter.safetensors", bytes_file({"x"}));
  EXPECT_EQ(opened(),
            "a | warning MC1108  adapter.safetensors: the file adapter.safetensors is not referenced: it is "
            "not part of the model (unused)");
}

TEST_F(HfFolder, ReadsASetWithoutIndexAndCountsItsFiles) {
  folder.put("m-00001-of-00003.safetensors", bytes_file({"a"}));
  folder.put("m-00003-of-00003.safetensors", bytes_file({"b", "a"}));
  EXPECT_EQ(opened(),
            "a b | problem MC1106  m-00002-of-00003.safetensors: the shard is missing "
            "| warning MC1105  : several safetensors files and no index: all of them are "
            "read as one set | problem MC1107 a m-00003-of-00003.safetensors: the tensor is in two files "
            "(duplicate): also in m-00001-of-00003.safetensors");
}

// Two ranks' pieces of one tensor [rows, 2], cut at `first` rows, the second beginning at `begin`.
void put_dcp_shards(const TempFolder& folder, i64 first, i64 begin, i64 second,
                    const char* second_type = "U8") {
  auto put = [&](const char* name, i64 offset, i64 rows, const char* type) {
    std::string header = cat(
        "{\"__metadata__\":{\"format\":\"pt\",\"DCP_SHARDING_INFO\":\"{\\\"w\\\":{\\\"saved_offsets\\\":[",
        offset, ",0]}}\"},", safetensors_entry("w", type, cat(rows, ",2"), 0, rows * 2), "}");
    folder.put(name, safetensors_file(header, std::string(static_cast<std::size_t>(rows * 2), 'd')));
  };
  put("shard-00001-model-00001-of-00001.safetensors", 0, first, "U8");
  put("shard-00002-model-00001-of-00001.safetensors", begin, second, second_type);
}

TEST_F(HfFolder, PiecesTheShardsOfTorchDcpTogether) {
  put_dcp_shards(folder, 3, 3, 2);
  std::unique_ptr<Store> store = open_store(folder.path());
  EXPECT_EQ(store->ranks(), 2);
  ASSERT_EQ(store->tensor_count(), 1);
  EXPECT_EQ(dims_to_string(store->dims(0)), "[5, 2]");
  ASSERT_EQ(store->chunk_count(0), 2);
  EXPECT_EQ(dims_to_string(store->chunk(0, 1).offsets), "[3, 0]");
  EXPECT_EQ(store->chunk(0, 1).rank, 1);
  EXPECT_TRUE(store->findings().empty());
}

TEST_F(HfFolder, TakesARankWithoutAFileForOneThatHoldsNothingOfIt) {
  auto put = [&](const std::string& rank, const char* number, const char* tensor) {
    std::string header = cat("{\"__metadata__\":{\"DCP_SHARDING_INFO\":\"{}\"},",
                             safetensors_entry(tensor, "U8", "2", 0, 2), "}");
    folder.put(cat("shard-", rank, "-model-", number, "-of-00003.safetensors"),
               safetensors_file(header, "dd"));
  };
  put("00001", "00001", "a");
  put("00002", "00001", "b");
  put("00002", "00002", "c");
  EXPECT_EQ(opened().find("problem MC1106  shard-00001-model-00002"), std::string::npos) << opened();
  EXPECT_NE(opened().find("warning MC1106  shard-00001-model-00002"), std::string::npos) << opened();
  EXPECT_NE(opened().find("problem MC1106  shard-00001-model-00003"), std::string::npos) << opened();
}

TEST_F(HfFolder, TellsDcpShardsThatLeaveAHoleOrOverlap) {
  put_dcp_shards(folder, 3, 4, 2);
  EXPECT_NE(opened().find("w | problem MC1304 w shard-00001"), std::string::npos);
  EXPECT_NE(opened().find("a hole: no piece covers offsets [3, 0], sizes [1, 2]"), std::string::npos);
  put_dcp_shards(folder, 3, 2, 2);
  EXPECT_NE(opened().find("overlap"), std::string::npos);
  put_dcp_shards(folder, 3, 3, 2, "I8");
  EXPECT_NE(opened().find("differ in data type"), std::string::npos);
  put_dcp_shards(folder, 3, INT64_MAX, 2);
  EXPECT_NE(opened().find("MC0101"), std::string::npos);
}

TEST_F(HfFolder, TellsTheModelsFamily) {
  folder.put("model.safetensors", bytes_file({"a"}));
  folder.put("config.json", "{\"architectures\": [\"Qwen3ForCausalLM\"], \"model_type\": \"qwen3\"}");
  std::unique_ptr<Store> store = open_store(folder.path());
  ASSERT_GE(store->facts().size(), 2u);
  EXPECT_EQ(store->facts()[0].second, "Qwen3ForCausalLM");
  folder.put("config.json", "{,}");
  EXPECT_EQ(opened().substr(0, 20), "a | warning MC1003  ");
}

}  // namespace
}  // namespace mckpt::impl
