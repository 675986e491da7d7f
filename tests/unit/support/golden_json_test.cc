#include "tests/support/golden_json.h"

#include <gtest/gtest.h>

namespace mckpt::impl {
namespace {

using Kind = GoldenJson::Kind;

TEST(GoldenJson, EveryKindOfValueIsRead) {
  GoldenJson v =
      GoldenJson::parse(R"( {"a": [1, -2, 9007199254740993], "b": {"c": null}, "d": true, "e": false,
                                        "f": 1.5e2, "g": "x\n\"\\\u00e9\ud83d\ude00", "h": [], "i": {}} )");
  EXPECT_EQ(v["a"].integers(), (std::vector<std::int64_t>{1, -2, 9007199254740993}));
  EXPECT_TRUE(v["b"]["c"].is_null());
  EXPECT_TRUE(v["d"].boolean());
  EXPECT_FALSE(v["e"].boolean());
  EXPECT_EQ(v["f"].kind(), Kind::kReal);
  EXPECT_EQ(v["f"].real(), 150);
  EXPECT_EQ(v["a"][1].real(), -2);
  EXPECT_EQ(v["g"].string(), "x\n\"\\\xc3\xa9\xf0\x9f\x98\x80");
  EXPECT_EQ(v["h"].size(), 0u);
  EXPECT_EQ(v["i"].members().size(), 0u);
  EXPECT_EQ(v.members()[1].first, "b");
  EXPECT_EQ(v.find("z"), nullptr);
}

TEST(GoldenJson, FaultsAreNotPassedOver) {
  for (const char* text : {"", "[1", "[1,]", "{\"a\" 1}", "{a: 1}", "\"x", "\"\\q\"", "\"\\u12\"", "nul",
                           "1 2", "[1 2]", "-", "nan", "[-inf]"})
    EXPECT_THROW(GoldenJson::parse(text), std::runtime_error) << text;
}

TEST(GoldenJson, AccessThatDoesNotFitTheValueThrows) {
  GoldenJson v = GoldenJson::parse(R"({"a": [1, "x"], "b": 1.5})");
  EXPECT_THROW(v["c"], std::runtime_error);
  EXPECT_THROW(v["a"].integers(), std::runtime_error);
  EXPECT_THROW(v["a"].strings(), std::runtime_error);
  EXPECT_THROW(v["a"][2], std::out_of_range);
  EXPECT_THROW(v["b"].integer(), std::runtime_error);
  EXPECT_THROW(v["b"]["c"], std::runtime_error);
  EXPECT_THROW(read_golden("no/such/file.json"), std::runtime_error);
}

}  // namespace
}  // namespace mckpt::impl
