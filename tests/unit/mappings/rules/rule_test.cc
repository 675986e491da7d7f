// The runs that every rule gives for one small tensor, spelled out.
#include "mappings/rule.h"
#include "mappings/config.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/text.h"
#include "tests/support/throws.h"
#include "tests/unit/mappings/rules/rule_cases.h"

namespace mckpt::impl {
namespace rule_test {

struct Dump {
  const char* what;
  RuleCase rule_case;
  std::string expected;  // every cell on its own line: local shape, partition dimension, runs
};

std::string dump(const RuleCase& c) {
  std::string out;
  for (i64 expert = 0; expert < c.experts; expert++)
    for (i64 part = 0; part < c.parts; part++) {
      Holding h = hold_case(c, part, expert);
      out += cat(to_string(h.shape.shape), " ", h.partition_dim, " ", to_string(h.runs));
      if (h.addend != 0) out += cat(" add ", h.addend);
      out += "\n";
    }
  return out;
}

// Letters name the source, numbers its rows. pre: rows of one item.
std::string rows(const RuleCase& c, i64 part, std::string_view letters) {
  std::string out;
  for (const ItemRun& run : hold_case(c, part).runs)
    for (i64 i = 0; i < run.items(); i++)
      out += cat(out.empty() ? "" : " ", letters.substr(static_cast<std::size_t>(run.slot), 1), run.at(i));
  return out;
}

TEST(Rules, GiveTheseRuns) {
  const std::vector<Dump> dumps = {
      {"rows of a matrix", {"column", {}, {{6, 3}}, 2}, "[3, 3] 0 [0+9]\n[3, 3] 0 [9+9]\n"},
      {"rows of a convolution", {"column", {}, {{4, 1, 2}}, 2}, "[2, 1, 2] 0 [0+4]\n[2, 1, 2] 0 [4+4]\n"},
      {"a value per head", {"column", {}, {{4}}, 4}, "[1] 0 [0+1]\n[1] 0 [1+1]\n[1] 0 [2+1]\n[1] 0 [3+1]\n"},
      {"a group on two cells",
       {"column_by_group", attention_model(2, 2, 3, 7), {{6}}, 4},
       "[3] 0 [0+3]\n[3] 0 [0+3]\n[3] 0 [3+3]\n[3] 0 [3+3]\n"},
      {"two groups a cell",
       {"column_by_group", attention_model(4, 4, 1, 7), {{4}}, 2},
       "[2] 0 [0+2]\n[2] 0 [2+2]\n"},
      {"one group",
       {"column_by_group", attention_model(4, 1, 3, 7), {{3}}, 2},
       "[3] -1 [0+3]\n[3] -1 [0+3]\n"},
      {"the only row", {"replicate_row", {}, {{1, 3}}, 2}, "[3] -1 [0+3]\n[3] -1 [0+3]\n"},
      {"the first row of two", {"replicate_slice", {}, {{2, 3}}, 2}, "[3] -1 [0+3]\n[3] -1 [0+3]\n"},
      {"the first item of three", {"replicate_slice", {}, {{3}}, 2}, "[1] -1 [0+1]\n[1] -1 [0+1]\n"},
      {"a whole matrix, transposed",
       {"replicate_transposed", {}, {{3, 4}}, 2},
       "[4, 3] -1 [0+1 x3/4 x4/1]\n[4, 3] -1 [0+1 x3/4 x4/1]\n"},
      {"a transposed matrix",
       {"column_transposed", {}, {{3, 4}}, 2},
       "[2, 3] 0 [0+1 x3/4 x2/1]\n[2, 3] 0 [2+1 x3/4 x2/1]\n"},
      {"halves exchanged", {"column_swapped", {}, {{2, 4}}, 2}, "[1, 4] 0 [2+2][0+2]\n[1, 4] 0 [6+2][4+2]\n"},
      {"columns", {"row", {}, {{3, 4}}, 2}, "[3, 2] 1 [0+2 x3/4]\n[3, 2] 1 [2+2 x3/4]\n"},
      {"columns of one cell", {"row", {}, {{3, 4}}, 1}, "[3, 4] 1 [0+12]\n"},
      {"on every cell", {"replicate", {}, {{3, 2}}, 2}, "[3, 2] -1 [0+6]\n[3, 2] -1 [0+6]\n"},
      {"a scalar", {"replicate", {}, {Shape{}}, 1}, "[] -1 [0+1]\n"},
      {"less one", {"zero_centered_norm", {}, {{3}}, 2}, "[3] -1 [0+3] add -1\n[3] -1 [0+3] add -1\n"},
      {"vocabulary", {"vocab", vocab_model(4), {{4, 3}}, 2}, "[2, 3] 0 [0+6]\n[2, 3] 0 [6+6]\n"},
      {"padded vocabulary",
       {"vocab", vocab_model(5), {{5, 2}}, 4, 1, 8},
       "[2, 2] 0 [0+4]\n[2, 2] 0 [4+4]\n[2, 2] 0 [8+2]-1[0+2]\n[2, 2] 0 -1[0+4]\n"},
      {"qkv by group",
       {"qkv", attention_model(4, 2, 2, 3), {{8, 3}, {4, 3}, {4, 3}}, 2},
       "[8, 3] 0 [0+12]1[0+6]2[0+6]\n[8, 3] 0 [12+12]1[6+6]2[6+6]\n"},
      {"more cells than groups",
       {"qkv", attention_model(4, 1, 1, 3), {{4, 3}, {1, 3}, {1, 3}}, 2},
       "[3, 3] 0 [0+9]\n[3, 3] 0 [9+3]1[0+3]2[0+3]\n"},
      {"qkv bias with output gate",
       {"qkv", attention_model(4, 2, 2, 3, true), {{16}, {4}, {4}}, 2},
       "[12] 0 [0+2 x2/4][2+2 x2/4]1[0+2]2[0+2]\n[12] 0 [8+2 x2/4][10+2 x2/4]1[2+2]2[2+2]\n"},
      {"a cut inside the gates",
       {"qkv", attention_model(4, 1, 2, 1, true), {{16, 1}, {2, 1}, {2, 1}}, 4},
       "[5, 1] 0 [0+2 x2/4][8+1]\n[5, 1] 0 [9+1][12+2][2+2]\n[5, 1] 0 [6+2 x2/4][14+1]\n"
       "[5, 1] 0 [15+1]1[0+2]2[0+2]\n"},
      {"keys that are the values too",
       {"qkv_keys_as_values", attention_model(4, 2, 2, 3), {{8, 3}, {4, 3}}, 2},
       "[8, 3] 0 [0+12]1[0+6]-3[0+6]\n[8, 3] 0 [12+12]1[6+6]-3[6+6]\n"},
      {"values smaller than keys",
       {"qkv", with_values(attention_model(4, 2, 2, 3), 1), {{8, 3}, {4, 3}, {2, 3}}, 2},
       "[7, 3] 0 [0+12]1[0+6]2[0+3]\n[7, 3] 0 [12+12]1[6+6]2[3+3]\n"},
      {"a gate for each head",
       {"qkv_head_gates", with_head_gates(attention_model(2, 2, 3, 1)), {{6, 1}, {6, 1}, {6, 1}, {2, 1}}, 2},
       "[12, 1] 0 [0+3]3[0+1]-5[0+1]-5[0+1]1[0+3]2[0+3]\n[12, 1] 0 [3+3]3[1+1]-5[1+1]-5[1+1]1[3+3]2[3+3]\n"},
      {"cuts between a gate and its copy",
       {"qkv_head_gates", with_head_gates(attention_model(4, 1, 2, 1)), {{8, 1}, {2, 1}, {2, 1}, {4, 1}}, 4},
       "[5, 1] 0 [0+5]\n[5, 1] 0 [5+3]3[0+1]-5[0+1]\n[5, 1] 0 3[1+1]-5[1+1]3[2+1]-5[2+1]3[3+1]\n"
       "[5, 1] 0 -5[3+1]1[0+2]2[0+2]\n"},
      {"queries alone",
       {"qkv_queries_only", attention_model(4, 2, 2, 3), {{8, 3}}, 2},
       "[8, 3] 0 [0+12]-1[0+6]-1[0+6]\n[8, 3] 0 [12+12]-1[6+6]-1[6+6]\n"},
      {"ones",
       {"head_norm_of_ones", attention_model(4, 2, 3, 5), {}, 2},
       "[3] -1 -1[0+3] add 1\n[3] -1 -1[0+3] add 1\n"},
      {"qkv from one tensor",
       {"qkv_joined", attention_model(2, 2, 2, 3), {{12, 3}}, 2},
       "[6, 3] 0 [0+6][12+6][24+6]\n[6, 3] 0 [6+6][18+6][30+6]\n"},
      {"gate above up",
       {"gated_mlp", {}, {{4, 3}, {4, 3}}, 2},
       "[4, 3] 0 [0+6]1[0+6]\n[4, 3] 0 [6+6]1[6+6]\n"},
      {"gate above up, from one tensor",
       {"gated_mlp_joined", {}, {{8, 3}}, 2},
       "[4, 3] 0 [0+6][12+6]\n[4, 3] 0 [6+6][18+6]\n"},
      {"MLA down projections",
       {"mla_down", mla_model(3, 2, 1, 2), {{3, 2}, {3, 2}}, 1},
       "[6, 2] -1 [0+6]1[0+6]\n"},
      {"fused experts",
       {"gated_expert", moe_model(2, 2, 3), {{2, 4, 3}}, 2, 2},
       "[2, 3] 0 [0+3][6+3]\n[2, 3] 0 [3+3][9+3]\n[2, 3] 0 [12+3][18+3]\n[2, 3] 0 [15+3][21+3]\n"},
      {"fused experts of one cell",
       {"gated_expert", moe_model(2, 2, 3), {{2, 4, 3}}, 1, 2},
       "[4, 3] 0 [0+12]\n[4, 3] 0 [12+12]\n"},
      {"fused experts, turned around",
       {"gated_expert_transposed", moe_model(2, 2, 3), {{2, 3, 4}}, 2, 2},
       "[2, 3] 0 [0+1 x3/4][2+1 x3/4]\n[2, 3] 0 [1+1 x3/4][3+1 x3/4]\n"
       "[2, 3] 0 [12+1 x3/4][14+1 x3/4]\n[2, 3] 0 [13+1 x3/4][15+1 x3/4]\n"},
      {"even and odd columns",
       {"gated_expert_interleaved", moe_model(1, 4, 3), {{1, 3, 8}}, 2},
       "[4, 3] 0 [0+1 x3/8 x2/2][1+1 x3/8 x2/2]\n[4, 3] 0 [4+1 x3/8 x2/2][5+1 x3/8 x2/2]\n"},
      {"even and odd rows",
       {"gated_expert_interleaved_rows", moe_model(1, 4, 3), {{1, 8, 3}}, 2},
       "[4, 3] 0 [0+3 x2/6][3+3 x2/6]\n[4, 3] 0 [12+3 x2/6][15+3 x2/6]\n"},
      {"even and odd items of a bias",
       {"gated_expert_interleaved_bias", moe_model(2, 4, 3), {{2, 8}}, 2, 2},
       "[4] 0 [0+1 x2/2][1+1 x2/2]\n[4] 0 [4+1 x2/2][5+1 x2/2]\n"
       "[4] 0 [8+1 x2/2][9+1 x2/2]\n[4] 0 [12+1 x2/2][13+1 x2/2]\n"},
      {"experts of two tensors",
       {"gated_expert_of_two", moe_model(2, 2, 3), {{2, 2, 3}, {2, 2, 3}}, 2, 2},
       "[2, 3] 0 [0+3]1[0+3]\n[2, 3] 0 [3+3]1[3+3]\n[2, 3] 0 [6+3]1[6+3]\n[2, 3] 0 [9+3]1[9+3]\n"},
      {"experts without gate",
       {"expert_column", moe_model(2, 2, 3), {{2, 2, 3}}, 2, 2},
       "[1, 3] 0 [0+3]\n[1, 3] 0 [3+3]\n[1, 3] 0 [6+3]\n[1, 3] 0 [9+3]\n"},
      {"experts of a latent width",
       {"expert_column", moe_model(1, 2, 3, 5), {{1, 2, 5}}, 2},
       "[1, 5] 0 [0+5]\n[1, 5] 0 [5+5]\n"},
      {"second layer of experts",
       {"expert_row", moe_model(2, 2, 3), {{2, 3, 2}}, 2, 2},
       "[3, 1] 1 [0+1 x3/2]\n[3, 1] 1 [1+1 x3/2]\n[3, 1] 1 [6+1 x3/2]\n[3, 1] 1 [7+1 x3/2]\n"},
      {"second layer, turned around",
       {"expert_row_transposed", moe_model(2, 4, 3), {{2, 4, 3}}, 2, 2},
       "[3, 2] 1 [0+1 x2/3 x3/1]\n[3, 2] 1 [6+1 x2/3 x3/1]\n"
       "[3, 2] 1 [12+1 x2/3 x3/1]\n[3, 2] 1 [18+1 x2/3 x3/1]\n"},
      {"bias of the second layer",
       {"expert_replicate", moe_model(2, 4, 3), {{2, 3}}, 2, 2},
       "[3] -1 [0+3]\n[3] -1 [0+3]\n[3] -1 [3+3]\n[3] -1 [3+3]\n"},
      {"GDN from flat tensors",
       {"gdn_in_proj", gdn_model(2, 4, 2, 1, 3), {{12, 3}, {4, 3}, {4, 3}, {4, 3}}, 2},
       "[12, 3] 0 [0+6][12+6][24+6]1[0+6]2[0+6]3[0+6]\n[12, 3] 0 [6+6][18+6][30+6]1[6+6]2[6+6]3[6+6]\n"},
      {"GDN from tensors by key head",
       {"gdn_in_proj_grouped", gdn_model(2, 4, 2, 1, 1), {{16, 1}, {8, 1}}, 1},
       "[24, 1] 0 [0+2 x2/8][2+2 x2/8][4+2 x2/8][6+2 x2/8]1[0+2 x2/4]1[2+2 x2/4]\n"},
      {"GDN convolution",
       {"gdn_conv", gdn_model(2, 4, 2, 1, 3, 4), {{12, 1, 4}}, 2},
       "[6, 1, 4] 0 [0+8][16+8][32+8]\n[6, 1, 4] 0 [8+8][24+8][40+8]\n"},
      {"GDN by head, two projections",
       {"gdn_qkvz", gdn_model(2, 4, 2, 1, 1), {{12, 1}, {4, 1}}, 1},
       "[16, 1] 0 [0+2][4+2][8+2]1[0+2][2+2][6+2][10+2]1[2+2]\n"},
      {"beta and alpha by head",
       {"gdn_ba", gdn_model(2, 4, 2, 1, 3), {{4, 3}, {4, 3}}, 2},
       "[4, 3] 0 [0+6]1[0+6]\n[4, 3] 0 [6+6]1[6+6]\n"},
      {"GDN convolution by head",
       {"gdn_conv_by_head", gdn_model(2, 4, 2, 1, 3), {{12}}, 2},
       "[6] 0 [0+2][4+2][8+2]\n[6] 0 [2+2][6+2][10+2]\n"},
      {"parts of a table",
       {"column_joined", {}, {{3, 2}, {3, 2}, {2, 2}}, 2},
       "[4, 2] 0 [0+6]1[0+2]\n[4, 2] 0 1[2+4]2[0+4]\n"},
      {"a gate behind each query head",
       {"qkv_gates_by_head", attention_model(2, 1, 2, 1, true), {{8, 1}, {2, 1}, {2, 1}}, 1},
       "[12, 1] 0 [0+8]1[0+2]2[0+2]\n"},
      {"Mamba in_proj",
       {"mamba_in_proj", mamba_model(4, 1, 2, 3, 2), {{24, 2}}, 2},
       "[12, 2] 0 [0+4][8+4][16+6][28+6][40+4]\n[12, 2] 0 [4+4][12+4][22+6][34+6][44+4]\n"},
      {"Mamba convolution",
       {"mamba_conv", mamba_model(4, 1, 2, 3, 2, 4), {{16, 1, 4}}, 2},
       "[8, 1, 4] 0 [0+8][16+12][40+12]\n[8, 1, 4] 0 [8+8][28+12][52+12]\n"},
      {"Mamba convolution bias",
       {"mamba_conv", mamba_model(4, 1, 2, 3, 2, 4), {{16}}, 2},
       "[8] 0 [0+2][4+3][10+3]\n[8] 0 [2+2][7+3][13+3]\n"},
  };
  for (const Dump& d : dumps) EXPECT_EQ(dump(d.rule_case), d.expected) << d.what;
  for (const Rule& rule : all_rules())
    EXPECT_TRUE(
        std::any_of(dumps.begin(), dumps.end(), [&](const Dump& d) { return d.rule_case.rule == rule.name; }))
        << rule.name << " has no example here";
}

// Row numbers as the real merge functions of Megatron-Bridge give them.
TEST(Rules, AgreeWithTheVectorsOfTheRealCode) {
  RuleCase qkv{"qkv", attention_model(4, 2, 2, 1), {{8, 1}, {4, 1}, {4, 1}}};
  EXPECT_EQ(rows(qkv, 0, "qkv"), "q0 q1 q2 q3 k0 k1 v0 v1 q4 q5 q6 q7 k2 k3 v2 v3");
  RuleCase gated{"qkv", attention_model(4, 2, 2, 1, true), {{16, 1}, {4, 1}, {4, 1}}};
  EXPECT_EQ(rows(gated, 0, "qkv"),
            "q0 q1 q4 q5 q2 q3 q6 q7 k0 k1 v0 v1 q8 q9 q12 q13 q10 q11 q14 q15 k2 k3 v2 v3");

  RuleCase flat{"gdn_in_proj", gdn_model(2, 4, 2, 1, 1), {{12, 1}, {4, 1}, {4, 1}, {4, 1}}, 2};
  EXPECT_EQ(rows(flat, 0, "qzba"), "q0 q1 q4 q5 q8 q9 z0 z1 b0 b1 a0 a1");
  EXPECT_EQ(rows(flat, 1, "qzba"), "q2 q3 q6 q7 q10 q11 z2 z3 b2 b3 a2 a3");
  RuleCase grouped{"gdn_in_proj_grouped", gdn_model(4, 8, 1, 1, 1), {{24, 1}, {16, 1}}, 2};
  EXPECT_EQ(rows(grouped, 0, "qb"), "q0 q6 q1 q7 q2 q3 q8 q9 q4 q5 q10 q11 b0 b1 b4 b5 b2 b3 b6 b7");
  EXPECT_EQ(rows(grouped, 1, "qb"),
            "q12 q18 q13 q19 q14 q15 q20 q21 q16 q17 q22 q23 b8 b9 b12 b13 b10 b11 b14 b15");

  RuleCase in_proj{"mamba_in_proj", mamba_model(4, 1, 2, 1, 1), {{16, 1}}, 2};
  EXPECT_EQ(rows(in_proj, 0, "r"), "r0 r1 r4 r5 r8 r10 r12 r13");
  EXPECT_EQ(rows(in_proj, 1, "r"), "r2 r3 r6 r7 r9 r11 r14 r15");
  RuleCase conv{"mamba_conv", mamba_model(4, 1, 2, 1, 1), {{8}}, 2};
  EXPECT_EQ(rows(conv, 0, "r"), "r0 r1 r4 r6");
  EXPECT_EQ(rows(conv, 1, "r"), "r2 r3 r5 r7");
  RuleCase gdn_conv{"gdn_conv", gdn_model(2, 2, 2, 2, 1), {{12}}, 2};
  EXPECT_EQ(rows(gdn_conv, 0, "r"), "r0 r1 r4 r5 r8 r9");
  EXPECT_EQ(rows(gdn_conv, 1, "r"), "r2 r3 r6 r7 r10 r11");
}

TEST(Rules, HaveTheSizesOfTheRealModels) {
  // Qwen3.5-35B-A3B, Nemotron-H 8B and Qwen3-Next at four cells.
  auto rows_at = [](const RuleCase& c) { return hold_case(c, 0).shape.shape[0]; };
  EXPECT_EQ(rows_at({"gdn_in_proj",
                     gdn_model(16, 32, 128, 128, 2048),
                     {{8192, 2048}, {4096, 2048}, {32, 2048}, {32, 2048}},
                     4}),
            3088);
  EXPECT_EQ(rows_at({"mamba_in_proj", mamba_model(128, 64, 8, 128, 4096), {{18560, 4096}}, 4}), 4640);
  RuleCase next{"qkv", attention_model(16, 2, 256, 2048, true), {{8192, 2048}, {512, 2048}, {512, 2048}}, 4};
  EXPECT_EQ(rows_at(next), 2304);
  // Eight query heads and the gate of head 0.
  EXPECT_EQ(to_string(hold_case(next, 0).runs), "[0+524288 x8/1048576][524288+524288]");
}

TEST(Rules, AreFoundByName) {
  EXPECT_EQ(rule_named("gated_mlp").roles.size(), 2u);
  EXPECT_EQ(thrown_by([] { rule_named("gatedmlp"); }), "MC0001 there is no mapping rule 'gatedmlp'");
  std::vector<std::string_view> names;
  for (const Rule& rule : all_rules()) {
    names.push_back(rule.name);
    EXPECT_EQ(rule.roles.empty(), rule.name == "head_norm_of_ones") << rule.name;
    EXPECT_FALSE(rule.summary.empty()) << rule.name;
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(Rules, WholeShapesComeFromCellsInOneWayOnly) {
  Holding column{LocalShape{{3, 5}}, 0, {}, 0}, row{LocalShape{{3, 5}}, 1, {}, 0};
  Holding all{LocalShape{{3, 5}}, -1, {}, 0};
  EXPECT_EQ(global_shape(column, 4).shape, (Shape{12, 5}));
  EXPECT_EQ(global_shape(row, 4).shape, (Shape{3, 20}));
  EXPECT_EQ(global_shape(all, 4).shape, (Shape{3, 5}));
}

}  // namespace rule_test
}  // namespace mckpt::impl
