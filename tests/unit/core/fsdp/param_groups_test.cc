#include "core/fsdp/param_groups.h"
#include "core/base/error.h"

#include <gtest/gtest.h>

namespace mckpt::impl {
namespace param_groups_test {

// A model of an embedding, two layers (the second with experts), a final norm and an output layer.
std::vector<Parameter> model() {
  return {
      {.shape = {40, 4}},
      {.shape = {4}, .unit = 0},
      {.shape = {8, 4}, .unit = 0},
      {.shape = {4}, .unit = 1},
      {.shape = {8, 4}, .expert = true, .unit = 1},
      {.shape = {8, 4}, .unit = 1},
      {.shape = {4, 8}, .expert = true, .unit = 1},
      {.shape = {4}},
      {.shape = {40, 4}},
  };
}

// "0 7 8 | 1 2 u0 | 4 6 u1e": members, unit and whether experts.
std::string dump(const std::vector<Bucket>& buckets) {
  std::string out;
  for (const Bucket& b : buckets) {
    if (!out.empty()) out += " | ";
    for (std::size_t i = 0; i < b.members.size(); i++) out += cat(i ? " " : "", b.members[i]);
    if (b.unit != kNoUnit) out += cat(" u", b.unit);
    if (b.expert) out += "e";
  }
  return out;
}

std::string grouped(const std::vector<Parameter>& parameters, const Grouping& how) {
  return dump(buckets_of(parameters, how));
}

TEST(ParamGroups, UnitsGiveADenseAndAnExpertGroupEachAndTheRestIsOne) {
  EXPECT_EQ(grouped(model(), {}), "0 7 8 | 1 2 u0 | 3 5 u1 | 4 6 u1e");
}

TEST(ParamGroups, WhetherOtherStrategiesHaveUnitsDependsOnTheVersion) {
  const char* without = "0 1 2 3 5 7 8 | 4 6e";
  for (Strategy s : {Strategy::kOptim, Strategy::kOptimGrads}) {
    EXPECT_EQ(grouped(model(), {.strategy = s}), without);
    EXPECT_EQ(grouped(model(), {.strategy = s, .units = UnitScope::kAllSharded}), grouped(model(), {}));
  }
  EXPECT_EQ(grouped(model(), {.strategy = Strategy::kNoShard}), without);
  EXPECT_EQ(grouped(model(), {.strategy = Strategy::kNoShard, .units = UnitScope::kAllSharded}), without);
}

TEST(ParamGroups, V2HasUnitsUnderEveryStrategy) {
  for (Strategy s :
       {Strategy::kNoShard, Strategy::kOptim, Strategy::kOptimGrads, Strategy::kOptimGradsParams})
    EXPECT_EQ(grouped(model(), {.strategy = s, .engine = Engine::kV2}), grouped(model(), {}));
}

TEST(ParamGroups, TheParameterThatReachesTheBucketSizeIsTheLastOfItsBucket) {
  EXPECT_EQ(grouped(model(), {.bucket_items = 161}), "0 7 | 8 | 1 2 u0 | 3 5 u1 | 4 6 u1e");
  EXPECT_EQ(grouped(model(), {.bucket_items = 160}), "0 | 7 8 | 1 2 u0 | 3 5 u1 | 4 6 u1e");
  EXPECT_EQ(grouped(model(), {.strategy = Strategy::kOptim, .bucket_items = 33}),
            "0 | 1 2 | 3 5 | 7 8 | 4 6e");
}

TEST(ParamGroups, DataTypeAndFreezingSplitAGroup) {
  std::vector<Parameter> m = model();
  m[7].dtype = DType::kF32;
  m[8].trainable = false;
  EXPECT_EQ(grouped(m, {}), "0 | 1 2 u0 | 3 5 u1 | 4 6 u1e | 7 | 8");
}

TEST(ParamGroups, EightBitFloatsAreOneType) {
  std::vector<Parameter> m{{.shape = {2}, .dtype = DType::kF8E4M3},
                           {.shape = {2}, .dtype = DType::kU8},
                           {.shape = {2}, .dtype = DType::kF8E5M2}};
  EXPECT_EQ(grouped(m, {}), "0 2 | 1");
}

TEST(ParamGroups, ASharedEmbeddingStandsAloneUnlessNothingIsSharded) {
  std::vector<Parameter> m = model();
  m[7].shared_embedding = true;
  EXPECT_EQ(grouped(m, {}), "0 | 7 | 8 | 1 2 u0 | 3 5 u1 | 4 6 u1e");
  EXPECT_EQ(grouped(m, {.strategy = Strategy::kNoShard}), "0 1 2 3 5 7 8 | 4 6e");
  m[7].shared_embedding = false;
  m[0].shared_embedding = true;
  EXPECT_EQ(grouped(m, {.bucket_items = 10}), "0 | 7 8 | 1 2 u0 | 3 5 u1 | 4 6 u1e");
}

TEST(ParamGroups, BucketsAreFortyMillionItemsOrAMillionARank) {
  EXPECT_EQ(default_bucket_items(Engine::kV1, 1), 40'000'000);
  EXPECT_EQ(default_bucket_items(Engine::kV1, 40), 40'000'000);
  EXPECT_EQ(default_bucket_items(Engine::kV1, 64), 64'000'000);
  EXPECT_THROW(default_bucket_items(Engine::kV1, i64{1} << 60), Error);
  EXPECT_EQ(default_bucket_items(Engine::kV2, 64), 0);
}

TEST(ParamGroups, NothingGivesNothingAndNonsenseIsRefused) {
  EXPECT_EQ(grouped({}, {}), "");
  EXPECT_THROW(grouped(model(), {.bucket_items = -1}), Error);
  i64 half = i64{1} << 62;
  EXPECT_THROW(grouped({{.shape = {half}}, {.shape = {half}}}, {}), Error);
}

}  // namespace param_groups_test
}  // namespace mckpt::impl
