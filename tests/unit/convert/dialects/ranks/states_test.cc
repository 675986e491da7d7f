#include "convert/dialects/ranks/states.h"

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "mappings/config.h"
#include "mappings/fsdp/layout.h"
#include "mappings/model/parameter.h"
#include "tests/support/throws.h"
#include "tests/unit/mappings/rules/rule_cases.h"

namespace mckpt::impl {
namespace {

std::string dump(std::vector<i64> held, i64 whole, i64 hsdp = 1) {
  std::optional<std::vector<RankStretch>> stretches = stretches_of(held, whole, hsdp);
  if (!stretches) return "no";
  std::string out;
  for (const RankStretch& s : *stretches)
    out += cat(out.empty() ? "" : " ", s.begin, "-", s.end, s.replica ? "'" : "");
  return out;
}

TEST(RankStretches, FollowEachOtherInTheOrderOfTheRanks) {
  EXPECT_EQ(dump({16, 16, 8, 0}, 40), "0-16 16-32 32-40 40-40");
  EXPECT_EQ(dump({0, 0, 40}, 40), "0-0 0-0 0-40");
  EXPECT_EQ(dump({40}, 40), "0-40");
  EXPECT_EQ(dump({16, 16, 7, 0}, 40), "no");
  EXPECT_EQ(dump({16, 16, 16, 0}, 40), "no");
}

TEST(RankStretches, MayBeHeldByEveryRankOrEveryInstance) {
  EXPECT_EQ(dump({40, 40, 40}, 40), "0-40 0-40' 0-40'");
  EXPECT_EQ(dump({24, 16, 24, 16}, 40, 2), "0-24 24-40 0-24' 24-40'");
  EXPECT_EQ(dump({24, 16, 16, 24}, 40, 2), "0-24 24-40 0-16' 16-40'");
  EXPECT_EQ(dump({24, 16, 24, 8}, 40, 2), "no");
}

TEST(RankStretches, ArePiecesOfWholeRows) {
  EXPECT_TRUE(is_made_of_rows(std::vector<i64>{2, 4}, Shape({10, 4})));
  EXPECT_TRUE(is_made_of_rows(std::vector<i64>{8}, Shape({10, 4})));
  EXPECT_TRUE(is_made_of_rows(std::vector<i64>{0}, Shape({10, 4})));
  EXPECT_FALSE(is_made_of_rows(std::vector<i64>{7}, Shape({10, 4})));
  EXPECT_FALSE(is_made_of_rows(std::vector<i64>{4, 2}, Shape({10, 4})));
  EXPECT_FALSE(is_made_of_rows({}, Shape({10, 4})));
  EXPECT_FALSE(is_made_of_rows({}, Shape()));
}

TEST(RankStretches, OfAParameterWithoutItemsHaveNone) {
  EXPECT_TRUE(is_made_of_rows(std::vector<i64>{0}, Shape({10, 0})));
  EXPECT_TRUE(is_made_of_rows(std::vector<i64>{3, 0}, Shape({10, 0})));
  EXPECT_FALSE(is_made_of_rows(std::vector<i64>{4}, Shape({10, 0})));
  EXPECT_TRUE(is_made_of_rows(std::vector<i64>{0}, Shape({0, 4})));
}

// Two instances of two ranks: the shard of (outer, inner) is inner * 2 + outer.
TEST(RankStretches, OfShardedInstancesHaveTheInnerRankMajor) {
  EXPECT_EQ(dump({16, 16, 16, 16}, 64, 2), "0-16 32-48 16-32 48-64");
}

// A parameter as tensor-parallel rank `tp` of `tps` has it, all split along dimension 0.
std::vector<ModelParameter> parameter(std::string name, std::vector<i64> local, KeySplit split, i64 tp,
                                      i64 tps) {
  auto holding = std::make_shared<Holding>();
  holding->shape.shape = Shape(local);
  holding->partition_dim = 0;
  ModelParameter p;
  p.name = p.global_name = std::move(name);
  p.holding = std::move(holding);
  p.part = {tp, tps};
  p.split = split;
  return {p};
}

// "weight_w 4@0, weight_v 3@0": the rows that a stretch of the parameter's items has of every piece.
std::string rows(const std::vector<ModelParameter>& list, ItemRange stretch, const ModelConfig& model = {}) {
  std::string out;
  i64 row = list[0].shape().row_items();
  for (const Piece& piece : stored_pieces(list[0], model)) {
    ItemRange whole = items_of(piece, row), part = intersection(stretch, whole);
    if (part.empty()) continue;
    FsdpTensor t = fsdp_tensor(list, 0, piece, {(part.begin - whole.begin) / row, part.items() / row});
    std::string_view key = t.key;
    out += cat(out.empty() ? "" : ", ", key.substr(std::string_view("model.module.").size()), " ", t.sizes[0],
               "@", t.offsets[0], " of ", t.global[0]);
  }
  return out;
}

// docs/formats/dcp.md, "How a fused parameter is cut": fc1 [10, 4] and its bias over four ranks.
TEST(WorkedExamples, AGatedParameterOverFourRanks) {
  auto weight = parameter("weight", {10, 4}, KeySplit::kSwiglu, 0, 1);
  EXPECT_EQ(rows(weight, {0, 16}), "weight_w 4@0 of 5");
  EXPECT_EQ(rows(weight, {16, 32}), "weight_w 1@4 of 5, weight_v 3@0 of 5");
  EXPECT_EQ(rows(weight, {32, 40}), "weight_v 2@3 of 5");
  EXPECT_EQ(rows(weight, {40, 40}), "");
  auto bias = parameter("bias", {10}, KeySplit::kSwiglu, 0, 1);
  EXPECT_EQ(rows(bias, {0, 8}), "bias_w 5@0 of 5, bias_v 3@0 of 5");
  EXPECT_EQ(rows(bias, {8, 10}), "bias_v 2@3 of 5");
}

// With the number of a rank's own items for the parameter's, rank 0 would have rows 0-1 of both halves, and
// rank 1, whose items are 16 to 32, nothing of halves that end at 8 and 16.
TEST(WorkedExamples, TheLocalNumberOfItemsWouldCutElsewhere) {
  auto weight = parameter("weight", {10, 4}, KeySplit::kSwiglu, 0, 1);
  auto mistaken = parameter("weight", {4, 4}, KeySplit::kSwiglu, 0, 1);
  EXPECT_EQ(rows(mistaken, {0, 16}), "weight_w 2@0 of 2, weight_v 2@0 of 2");
  EXPECT_EQ(rows(mistaken, {16, 32}), "");
  EXPECT_NE(rows(weight, {0, 16}), rows(mistaken, {0, 16}));
}

// fc1 [20, 4] on two tensor-parallel times two data-parallel ranks: each has one half of its tensor-parallel
// rank's ten rows, and the halves are [W0; W1] and [V0; V1].
TEST(WorkedExamples, AGatedParameterOnTwoTensorParallelRanks) {
  for (i64 tp : {0, 1}) {
    auto weight = parameter("weight", {10, 4}, KeySplit::kSwiglu, tp, 2);
    EXPECT_EQ(rows(weight, {0, 20}), cat("weight_w 5@", 5 * tp, " of 10"));
    EXPECT_EQ(rows(weight, {20, 40}), cat("weight_v 5@", 5 * tp, " of 10"));
  }
}

// in_proj [28, 4] of a gated delta net with parts of 6, 6, 6, 6, 2 and 2 rows, seven rows a rank.
TEST(WorkedExamples, AGatedDeltaNetOverFourRanks) {
  ModelConfig model = gdn_model(2, 2, 3, 3, 4);
  auto weight = parameter("in_proj.weight", {28, 4}, KeySplit::kGdnInProj, 0, 1);
  auto of = [&](i64 rank) { return rows(weight, {28 * rank, 28 * rank + 28}, model); };
  EXPECT_EQ(of(0), "in_proj.weight.query 6@0 of 6, in_proj.weight.key 1@0 of 6");
  EXPECT_EQ(of(1), "in_proj.weight.key 5@1 of 6, in_proj.weight.value 2@0 of 6");
  EXPECT_EQ(of(2), "in_proj.weight.value 4@2 of 6, in_proj.weight.z 3@0 of 6");
  EXPECT_EQ(of(3), "in_proj.weight.z 3@3 of 6, in_proj.weight.beta 2@0 of 2, in_proj.weight.alpha 2@0 of 2");
}

TEST(WorkedExamples, AGatedDeltaNetOnTwoTensorParallelRanks) {
  ModelConfig model = gdn_model(2, 2, 3, 3, 4);
  auto of = [&](i64 tp, i64 dp) {
    return rows(parameter("p", {14, 4}, KeySplit::kGdnInProj, tp, 2), {28 * dp, 28 * dp + 28}, model);
  };
  EXPECT_EQ(of(0, 0), "p.query 3@0 of 6, p.key 3@0 of 6, p.value 1@0 of 6");
  EXPECT_EQ(of(1, 0), "p.query 3@3 of 6, p.key 3@3 of 6, p.value 1@3 of 6");
  EXPECT_EQ(of(0, 1), "p.value 2@1 of 6, p.z 3@0 of 6, p.beta 1@0 of 2, p.alpha 1@0 of 2");
  EXPECT_EQ(of(1, 1), "p.value 2@4 of 6, p.z 3@3 of 6, p.beta 1@1 of 2, p.alpha 1@1 of 2");
}

// The fused down projection of MLA, [6 + 4 + 2, 8]: whole rows, cut by the sums of its parts.
TEST(WorkedExamples, AnMlaDownProjectionOverThreeRanks) {
  ModelConfig model = mla_model(6, 4, 2, 8);
  auto weight = parameter("linear_qkv_down_proj.weight", {12, 8}, KeySplit::kMlaDown, 0, 1);
  weight[0].holding = [&] {
    auto h = std::make_shared<Holding>(*weight[0].holding);
    h->partition_dim = -1;
    return h;
  }();
  EXPECT_EQ(rows(weight, {0, 40}, model), "linear_q_down_proj.weight 5@0 of 6");
  EXPECT_EQ(rows(weight, {40, 72}, model),
            "linear_q_down_proj.weight 1@5 of 6, linear_kv_down_proj.weight 3@0 of 6");
  EXPECT_EQ(rows(weight, {72, 96}, model), "linear_kv_down_proj.weight 3@3 of 6");
}

TEST(WorkedExamples, OddSizesAreRefusedWithTheWholeShape) {
  auto odd = parameter("weight", {7, 4}, KeySplit::kSwiglu, 0, 1);
  EXPECT_EQ(
      thrown_by([&] {
        rows(odd, {0, 16});
      }),
      "MC2012 a gated parameter has two halves of the same number of rows: expected an even first dimension "
      "of the whole parameter, found [7, 4]");
  auto of_two = parameter("weight", {5, 4}, KeySplit::kSwiglu, 1, 2);
  EXPECT_EQ(thrown_by([&] {
              rows(of_two, {0, 16});
            }),
            "MC0201 part _w of a parameter of shape [10, 4] does not divide by the parallel size: expected a "
            "multiple of 2, found 5");
}

}  // namespace
}  // namespace mckpt::impl
