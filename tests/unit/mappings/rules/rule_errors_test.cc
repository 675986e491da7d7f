// The errors of rules for wrong input: the number, whose it is, what was expected and what was found.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/error.h"
#include "mappings/config.h"
#include "tests/support/throws.h"
#include "tests/unit/mappings/rules/rule_cases.h"

namespace mckpt::impl {
namespace rule_errors_test {

std::string refusal(const RuleCase& c, i64 part = 0, i64 expert = 0) {
  return thrown_by([&] { hold_case(c, part, expert); });
}

constexpr i64 kHuge = i64{1} << 62;

struct Refused {
  RuleCase rule_case;
  std::string_view message;
};

TEST(RuleErrors, NameTheNumberTheRoleAndBothSides) {
  const std::vector<Refused> refused = {
      {{"column", {}, {{5, 3}}, 2},
       "MC0201 the number of rows of the weight does not divide by the parallel size: expected a multiple of "
       "2, "
       "found 5"},
      {{"column", {}, {Shape{}}, 1},
       "MC2011 weight has a wrong number of dimensions: expected 1 to 64, found 0, []"},
      {{"column_transposed", {}, {{3, 5}}, 2},
       "MC0201 the number of columns of the weight does not divide by the parallel size: expected a multiple "
       "of 2, found 5"},
      {{"column_transposed", {}, {{4}}, 1},
       "MC2011 weight has a wrong number of dimensions: expected 2, found 1, [4]"},
      {{"column_swapped", {}, {{4, 5}}, 2},
       "MC2010 the number of columns of the weight does not divide by the number of halves: expected a "
       "multiple of 2, found 5"},
      {{"column_swapped", {}, {{5, 4}}, 2},
       "MC0201 the number of rows of the weight does not divide by the parallel size: expected a multiple of "
       "2, found 5"},
      {{"row", {}, {{4, 5}}, 2},
       "MC0201 the number of columns of the weight does not divide by the parallel size: expected a multiple "
       "of "
       "2, found 5"},
      {{"row", {}, {{4}}, 2}, "MC2011 weight has a wrong number of dimensions: expected 2, found 1, [4]"},
      {{"replicate", {}, {{4}, {4}}, 1},
       "MC2011 the number of source tensors is wrong: expected 1: weight, found 2"},
      {{"replicate_row", {}, {{2, 4}}, 1},
       "MC2011 weight does not have the shape of a matrix of one row: expected [1, 4], found [2, 4]"},
      {{"replicate_slice", {}, {{2, 3, 4}}, 1},
       "MC2011 weight has a wrong number of dimensions: expected 1 to 2, found 3, [2, 3, 4]"},
      {{"replicate_transposed", {}, {{4}}, 1},
       "MC2011 weight has a wrong number of dimensions: expected 2, found 1, [4]"},
      {{"column_by_group", attention_model(3, 3, 2, 3), {{6}}, 2},
       "MC0201 of the number of key-value groups and the parallel size, neither divides the other: expected "
       "a "
       "multiple or a divisor of 2, found 3"},
      {{"zero_centered_norm", {}, {{4, 1}}, 1},
       "MC2011 weight has a wrong number of dimensions: expected 1, found 2, [4, 1]"},
      {{"vocab", vocab_model(5), {{5, 2}}, 2},
       "MC0201 the number of rows of the vocabulary does not divide by the parallel size: expected a "
       "multiple of "
       "2, found 5"},
      {{"vocab", vocab_model(5), {{6, 2}}, 2},
       "MC2011 weight does not have the shape of the vocabulary: expected [5, 2], found [6, 2]"},
      {{"vocab", vocab_model(5), {{5, 2}}, 2, 1, 4},
       "MC0201 the padded vocabulary is smaller than the vocabulary: expected at least 5, found 4"},
      {{"vocab", {}, {{5, 2}}, 1},
       "MC2010 the model's configuration does not give the size of the vocabulary: expected a positive "
       "number, "
       "found 0"},
      {{"vocab", vocab_model(5), {{5, 2}}, 2, 1, kHuge},
       "MC0101 the number of items of a shape does not fit 63 bits: found 4611686018427387904 * 2"},
      {{"qkv", attention_model(4, 2, 2, 3), {{9, 3}, {4, 3}, {4, 3}}, 1},
       "MC2011 q_proj does not have the shape of query heads * head size: expected [8, 3], found [9, 3]"},
      {{"qkv", attention_model(4, 2, 2, 3, true), {{8, 3}, {4, 3}, {4, 3}}, 1},
       "MC2011 q_proj does not have the shape of query heads * head size * 2 (an output gate for each): "
       "expected "
       "[16, "
       "3], found [8, 3]"},
      {{"qkv", attention_model(4, 2, 2, 3), {{8, 3}, {4, 3}, {4, 2}}, 1},
       "MC2011 v_proj does not have the shape of key-value groups * head size: expected [4, 3], found [4, "
       "2]"},
      {{"qkv", attention_model(4, 2, 2, 3), {{8, 3}, {4}, {4, 3}}, 1},
       "MC2011 k_proj does not have the shape of key-value groups * head size: expected [4, 3], found [4]"},
      {{"qkv", attention_model(4, 3, 2, 3), {{8, 3}, {6, 3}, {6, 3}}, 1},
       "MC2010 the number of query heads does not divide by the number of key-value groups: expected a "
       "multiple "
       "of 3, found 4"},
      {{"qkv", attention_model(4, 2, 2, 3), {{8, 3}, {4, 3}, {4, 3}}, 3},
       "MC0201 the number of query heads does not divide by the parallel size: expected a multiple of 3, "
       "found 4"},
      {{"qkv", attention_model(6, 2, 2, 3), {{12, 3}, {4, 3}, {4, 3}}, 3},
       "MC0201 of the number of key-value groups and the parallel size, neither divides the other: expected "
       "a "
       "multiple or a divisor of 3, found 2"},
      {{"qkv", attention_model(8, 1, 1, 3), {{8, 3}, {1, 3}, {1, 3}}, 8},
       "MC0201 the number of rows of queries, keys and values does not divide by the parallel size: expected "
       "a "
       "multiple of 8, found 10"},
      {{"qkv", attention_model(4, 0, 2, 3), {{8, 3}, {4, 3}, {4, 3}}, 1},
       "MC2010 the model's configuration does not give the number of key-value groups: expected a positive "
       "number, found 0"},
      {{"qkv", attention_model(kHuge, kHuge, 4, 3), {{8, 3}, {4, 3}, {4, 3}}, 1},
       "MC0101 the number of rows of the queries does not fit 63 bits: found 4611686018427387904 * 4"},
      {{"qkv_gates_by_head", attention_model(4, 2, 2, 3, true), {{8, 3}, {4, 3}, {4, 3}}, 1},
       "MC2011 q_proj does not have the shape of query heads * head size * 2 (an output gate for each): expected "
       "[16, 3], found [8, 3]"},
      {{"qkv_keys_as_values", attention_model(4, 2, 2, 3), {{8, 3}, {8, 3}}, 1},
       "MC2011 k_proj does not have the shape of key-value groups * head size: expected [4, 3], found [8, "
       "3]"},
      {{"qkv_head_gates", with_head_gates(attention_model(4, 2, 2, 3)), {{8, 3}, {4, 3}, {4, 3}, {8, 3}}, 1},
       "MC2011 g_proj does not have the shape of query heads: expected [4, 3], found [8, 3]"},
      {{"qkv", with_values(attention_model(4, 2, 2, 3), 1), {{8, 3}, {4, 3}, {4, 3}}, 1},
       "MC2011 v_proj does not have the shape of key-value groups * head size: expected [2, 3], found [4, 3]"},
      {{"gated_expert_of_two", moe_model(2, 2, 3), {{2, 2, 3}, {2, 3, 2}}, 1},
       "MC2011 up_proj does not have the shape of experts, their width and the hidden size: expected [2, 2, "
       "3], found [2, 3, 2]"},
      {{"qkv_queries_only", attention_model(4, 2, 2, 3), {{16, 3}}, 1},
       "MC2011 q_proj does not have the shape of query heads * head size: expected [8, 3], found [16, 3]"},
      {{"head_norm_of_ones", attention_model(4, 2, 0, 3), {}, 1},
       "MC2010 the model's configuration does not give the size of a head: expected a positive number, found "
       "0"},
      {{"qkv_joined", attention_model(2, 2, 2, 3), {{11, 3}}, 1},
       "MC2011 qkv does not have the shape of all queries, keys and values: expected [12, 3], found [11, 3]"},
      {{"mla_down", mla_model(3, 2, 1, 2), {{3, 2}, {2, 2}}, 1},
       "MC2011 kv_a_proj_with_mqa does not have the shape of the key-value rank and the rotary part: "
       "expected [3, "
       "2], "
       "found [2, 2]"},
      {{"gated_mlp", {}, {{4, 3}, {4, 2}}, 1},
       "MC2011 up_proj does not have the shape of gate_proj: expected [4, 3], found [4, 2]"},
      {{"gated_mlp_joined", {}, {{7, 3}}, 1},
       "MC2011 the source gate_up_proj has not two halves: expected an even number of rows, gate and up, "
       "found "
       "[7, 3]"},
      {{"gated_mlp", {}, {{3, 3}, {3, 3}}, 2},
       "MC0201 the width of the MLP does not divide by the parallel size: expected a multiple of 2, found 3"},
      {{"gated_expert", moe_model(2, 2, 3), {{2, 3, 4}}, 1},
       "MC2011 gate_up_proj does not have the shape of experts, their width and the hidden size: expected "
       "[2, 4, "
       "3], "
       "found [2, 3, 4]"},
      {{"gated_expert", moe_model(2, 3, 4), {{2, 6, 4}}, 2},
       "MC0201 the width of an expert does not divide by the parallel size: expected a multiple of 2, found "
       "3"},
      {{"gated_expert_transposed", moe_model(2, 2, 3), {{2, 4, 3}}, 1},
       "MC2011 gate_up_proj does not have the shape of experts, their width and the hidden size: expected "
       "[2, 3, "
       "4], "
       "found [2, 4, 3]"},
      {{"gated_expert_interleaved", moe_model(2, 3, 3), {{2, 3, 6}}, 2},
       "MC0201 the width of an expert does not divide by the parallel size: expected a multiple of 2, found "
       "3"},
      {{"gated_expert_interleaved_rows", moe_model(0, 3, 3), {{2, 6, 3}}, 2},
       "MC2010 the model's configuration does not give the number of experts: expected a positive number, "
       "found "
       "0"},
      {{"gated_expert_interleaved_bias", moe_model(2, 3, 3), {{2, 3}}, 1},
       "MC2011 gate_up_proj_bias does not have the shape of experts by twice their width: expected [2, 6], "
       "found "
       "[2, "
       "3]"},
      {{"expert_column", moe_model(2, 2, 3, 5), {{2, 2, 3}}, 1},
       "MC2011 up_proj does not have the shape of experts, their width and the hidden size: expected [2, 2, "
       "5], "
       "found "
       "[2, 2, 3]"},
      {{"expert_row", moe_model(3, 2, 5), {{2, 5, 2}}, 1},
       "MC2011 down_proj does not have the shape of experts, their width and the hidden size: expected [3, "
       "5, 2], "
       "found "
       "[2, 5, 2]"},
      {{"expert_row_transposed", moe_model(2, 3, 5), {{2, 3, 5}}, 2},
       "MC0201 the width of an expert does not divide by the parallel size: expected a multiple of 2, found "
       "3"},
      {{"expert_replicate", moe_model(kHuge, 2, 4), {{2, 4}}, 1},
       "MC0101 the number of items of all experts does not fit 63 bits: found 4611686018427387904 * 2"},
      {{"gdn_in_proj", gdn_model(2, 4, 2, 1, 3), {{12, 3}, {4, 3}, {4, 3}, {3, 3}}, 1},
       "MC2011 in_proj_a does not have the shape of value heads: expected [4, 3], found [3, 3]"},
      {{"gdn_in_proj", gdn_model(2, 4, 2, 1, 3), {{12, 3}, {4, 3}, {4, 3}, {4, 3}}, 4},
       "MC0201 the number of linear-attention key heads does not divide by the parallel size: expected a "
       "multiple "
       "of 4, found 2"},
      {{"gdn_in_proj_grouped", gdn_model(2, 4, 2, 1, 3), {{16, 3}, {4, 3}}, 1},
       "MC2011 in_proj_ba does not have the shape of 2 * value heads: expected [8, 3], found [4, 3]"},
      {{"gdn_in_proj_grouped", gdn_model(2, 5, 2, 1, 3), {{18, 3}, {10, 3}}, 1},
       "MC2010 the number of linear-attention value heads does not divide by the number of key heads: "
       "expected a "
       "multiple of 2, found 5"},
      {{"gdn_conv", gdn_model(2, 4, 2, 1, 3, 4), {{12, 1, 3}}, 1},
       "MC2011 conv1d does not have the shape of 2 * key heads * size + value heads * size: expected [12, 1, "
       "4], "
       "found "
       "[12, 1, 3]"},
      {{"gdn_qkvz", gdn_model(2, 4, 2, 1, 3), {{12, 3}, {8, 3}}, 1},
       "MC2011 in_proj_z does not have the shape of value heads * size: expected [4, 3], found [8, 3]"},
      {{"gdn_ba", gdn_model(2, 4, 2, 1, 3), {{4, 3}, {4, 3}}, 4},
       "MC0201 the number of linear-attention key heads does not divide by the parallel size: expected a "
       "multiple of 4, found 2"},
      {{"gdn_conv_by_head", gdn_model(2, 4, 2, 1, 3, 4), {{12, 1, 3}}, 1},
       "MC2011 conv1d does not have the shape of 2 * key heads * size + value heads * size: expected [12, 1, "
       "4], found [12, 1, 3]"},
      {{"column_joined", {}, {{3, 2}, {2, 4}}, 1},
       "MC2011 weight does not have the shape of the first part but for its rows: expected [2, 2], found [2, 4]"},
      {{"column_joined", {}, {{3, 2}, {2, 2}}, 2},
       "MC0201 the number of rows of all parts does not divide by the parallel size: expected a multiple of 2, "
       "found 5"},
      {{"mamba_in_proj", mamba_model(4, 1, 2, 3, 2), {{23, 2}}, 1},
       "MC2011 in_proj does not have the shape of 2 * heads * head size + 2 * groups * state + heads: "
       "expected "
       "[24, 2], "
       "found [23, 2]"},
      {{"mamba_in_proj", mamba_model(4, 1, 2, 3, 2), {{24, 2}}, 4},
       "MC0201 the number of Mamba groups does not divide by the parallel size: expected a multiple of 4, "
       "found "
       "2"},
      {{"mamba_in_proj", mamba_model(3, 1, 2, 3, 2), {{24, 2}}, 1},
       "MC2010 the number of Mamba heads does not divide by the number of Mamba groups: expected a multiple "
       "of 2, "
       "found 3"},
      {{"mamba_conv", mamba_model(4, 1, 2, 3, 2), {{16, 4}}, 1},
       "MC2011 conv1d does not have the shape of heads * head size + 2 * groups * state: expected [16, 1, "
       "4], "
       "found "
       "[16, 4]"},
  };
  for (const Refused& r : refused) EXPECT_EQ(refusal(r.rule_case), r.message) << to_string(r.rule_case);
  for (const Rule& rule : all_rules())
    EXPECT_TRUE(std::any_of(refused.begin(), refused.end(),
                            [&](const Refused& r) { return r.rule_case.rule == rule.name; }))
        << rule.name << " refuses nothing here";
}

// A source one row or column too large is taken by no rule that knows how large it should be.
TEST(RuleErrors, SeeEveryDimensionOfEverySource) {
  auto takes_any = [](std::string_view rule, int d) {
    return rule == "column" || rule == "row" || rule == "replicate" || rule == "zero_centered_norm" ||
           rule == "replicate_slice" || rule == "replicate_transposed" || rule == "column_transposed" ||
           rule == "column_swapped" || rule == "column_joined" ||
           ((rule == "vocab" || rule == "replicate_row" || rule == "gated_mlp_joined") && d == 1);
  };
  for (const Rule& rule : all_rules())
    for (const RuleCase& good : cases_of(rule.name))
      for (std::size_t slot = 0; slot < good.sources.size(); slot++)
        for (int d = 0; d < good.sources[slot].rank(); d++) {
          if (takes_any(rule.name, d)) continue;
          RuleCase bad = good;
          bad.sources[slot] = good.sources[slot].with_dim(d, good.sources[slot][d] + 1);
          std::string message = refusal(bad);
          ASSERT_EQ(message.substr(0, 6), "MC2011") << to_string(bad);
          ASSERT_NE(message.find(to_string(bad.sources[slot])), message.npos) << message;
        }
}

TEST(RuleErrors, SayWhichRuleItWasAndWhereTheOtherFormIsTaken) {
  auto error = [](const RuleCase& c) {
    try {
      hold_case(c, 0);
    } catch (const Error& e) {
      return cat(e.notes().front(), "; ", e.help());
    }
    return std::string("nothing");
  };
  const std::string other = "the file stores the experts transposed; use rule ";
  EXPECT_EQ(error({"gated_expert", moe_model(2, 2, 3), {{2, 3, 4}}}),
            "mapping rule: gated_expert; " + other + "gated_expert_transposed");
  EXPECT_EQ(error({"gated_expert_interleaved", moe_model(2, 2, 3), {{2, 4, 3}}}),
            "mapping rule: gated_expert_interleaved; " + other + "gated_expert_interleaved_rows");
  EXPECT_EQ(error({"expert_row", moe_model(2, 2, 3), {{2, 2, 3}}}),
            "mapping rule: expert_row; " + other + "expert_row_transposed");
  EXPECT_EQ(error({"expert_row_transposed", moe_model(2, 2, 3), {{2, 3, 2}}}),
            "mapping rule: expert_row_transposed; " + other + "expert_row");
}

TEST(RuleErrors, KnowTheirCellsAndExperts) {
  RuleCase column{"column", {}, {{4, 3}}, 2};
  EXPECT_EQ(refusal(column, 2),
            "MC0201 there is no such tensor-parallel part: expected a part of [0, 2), found 2");
  EXPECT_EQ(refusal(column, -1).substr(0, 6), "MC0201");
  column.parts = 0;
  EXPECT_EQ(refusal(column).substr(0, 6), "MC0201");
  RuleCase experts{"gated_expert", moe_model(2, 2, 3), {{2, 4, 3}}};
  EXPECT_EQ(refusal(experts, 0, 2), "MC2010 there is no such expert: expected an expert of [0, 2), found 2");
  EXPECT_EQ(refusal(experts, 0, -1).substr(0, 6), "MC2010");
}

}  // namespace rule_errors_test
}  // namespace mckpt::impl
