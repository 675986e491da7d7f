// A dump of a rank, whole and with every kind of fault.
#include "io/rank_dump/rank_dump.h"

#include <gtest/gtest.h>

#include "io/file/open_options.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace rank_dump_test {

const std::string kSum(64, 'a');

std::string tensor(const std::string& change = "", const std::string& by = "") {
  std::string text =
      R"x({"name": "w", "dtype": "bfloat16", "shape": [6, 4], "local_shape": [2, 4], "offset": [4, 0],)x"
      R"x( "placements": ["S(0)"], "attributes": {"partition_dim": 0, "allreduce": false}, "sha256": ")x" +
      kSum + "\"}";
  if (!change.empty()) text.replace(text.find(change), change.size(), by);
  return text;
}

std::string dump(const std::string& tensors, const std::string& head = R"("rank": 1, "world": 4)") {
  return R"({"schema": "mckpt.rank_dump/1", )" + head + R"(, "tensors": [)" + tensors + "]}";
}

RankDump read(const std::string& text) {
  TempFolder folder;
  return read_rank_dump(folder.put("d.json", text), OpenOptions{});
}

TEST(RankDump, HasWhatTheRankSays) {
  const RankDump d = read(dump(tensor()));
  EXPECT_EQ(d.rank, 1);
  EXPECT_EQ(d.world, 4);
  ASSERT_EQ(d.tensors.size(), 1u);
  const DumpedTensor& t = d.tensors[0];
  EXPECT_EQ(t.name, "w");
  EXPECT_EQ(t.dtype, "bfloat16");
  EXPECT_EQ(t.shape, (std::vector<i64>{6, 4}));
  EXPECT_EQ(t.sizes, (std::vector<i64>{2, 4}));
  EXPECT_EQ(t.offset, (std::vector<i64>{4, 0}));
  EXPECT_EQ(t.placements, std::vector<std::string>{"S(0)"});
  EXPECT_EQ(t.attributes.partition_dim, 0);
  EXPECT_EQ(t.attributes.allreduce, false);
  EXPECT_FALSE(t.attributes.tensor_model_parallel || t.attributes.sequence_parallel);
  EXPECT_EQ(t.sha256, kSum);
  EXPECT_FALSE(read(dump(tensor("[4, 0]", "null"))).tensors[0].offset);
}

TEST(RankDump, IsRefusedIfItIsNotWhatItSays) {
  struct {
    std::string text, error;
  } cases[] = {
      {dump(tensor("\"dtype\": \"bfloat16\", ", "")), "MC1003"},
      {dump(tensor("[4, 0]", "[5, 0]")), "MC1003"},
      {dump(tensor("[4, 0]", "[4]")), "MC1003"},
      {dump(tensor("[2, 4]", "[2, 5]")), "MC1003"},
      {dump(tensor("[6, 4]", "[6, -4]")), "MC1003"},
      {dump(tensor("[6, 4]", "[6000000000000000000, 4]")), "MC0101"},
      {dump(tensor(kSum, "abc")), "MC1003"},
      {dump(tensor("false", "\"no\"")), "MC1003"},
      {dump(tensor() + ", " + tensor()), "MC1003"},
      {dump(tensor(), R"("rank": 4, "world": 4)"), "MC1003"},
      {dump(tensor(), R"("rank": 1)"), "MC1003"},
      {"{\"schema\": \"mckpt.rank_dump/2\", \"rank\": 0, \"world\": 1, \"tensors\": []}", "MC1003"},
      {"[]", "MC1003"},
  };
  for (const auto& c : cases) {
    const std::string thrown = thrown_by([&] { read(c.text); });
    EXPECT_TRUE(thrown.starts_with(c.error)) << c.text << "\n" << thrown;
    EXPECT_NE(thrown.find("d.json"), std::string::npos) << thrown;
  }
}

TEST(RankDump, IsKnownByItsFirstMember) {
  TempFolder folder;
  EXPECT_TRUE(is_rank_dump(folder.put("a.json", dump("")), {}));
  EXPECT_FALSE(is_rank_dump(folder.put("b.json", "{\"schema\": \"mckpt.card/1\"}"), {}));
  EXPECT_FALSE(is_rank_dump(folder.put("c.json", ""), {}));
  EXPECT_FALSE(is_rank_dump(folder.path(), {}));
  EXPECT_FALSE(is_rank_dump(folder.path() + "/none", {}));
}

}  // namespace rank_dump_test
}  // namespace mckpt::impl
