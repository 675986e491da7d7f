// Key splits: the parts of fused parameters that checkpoints store under keys of their own.
#include <gtest/gtest.h>

#include "core/base/text.h"
#include "mappings/config.h"
#include "tests/support/throws.h"
#include "tests/unit/mappings/rules/rule_cases.h"

namespace mckpt::impl {
namespace pieces_test {

std::string dump(KeySplit split, const ModelConfig& model, const Shape& global, i64 parts) {
  std::string out;
  for (const Piece& p : pieces_of(split, model, {global}, {0, parts}))
    out += cat(out.empty() ? "" : " ", p.name, " ", p.first_row, "+", p.rows);
  return out;
}

TEST(Pieces, HaveTheseRows) {
  EXPECT_EQ(dump(KeySplit::kSwiglu, {}, {10, 4}, 1), "_w 0+5 _v 5+5");
  EXPECT_EQ(dump(KeySplit::kSwiglu, {}, {20}, 2), "_w 0+5 _v 5+5");
  EXPECT_EQ(dump(KeySplit::kGdnInProj, gdn_model(2, 2, 3, 3, 4), {28, 4}, 2),
            ".query 0+3 .key 3+3 .value 6+3 .z 9+3 .beta 12+1 .alpha 13+1");
  // The class of Qwen3.5-35B-A3B.
  EXPECT_EQ(dump(KeySplit::kGdnInProj, gdn_model(16, 32, 128, 128, 8), {12'352, 8}, 4),
            ".query 0+512 .key 512+512 .value 1024+1024 .z 2048+1024 .beta 3072+8 .alpha 3080+8");
  EXPECT_EQ(dump(KeySplit::kGdnConv, gdn_model(2, 2, 3, 3, 4), {18, 1, 4}, 2),
            ".query 0+3 .key 3+3 .value 6+3");
  EXPECT_EQ(dump(KeySplit::kMambaInProj, mamba_model(16, 8, 2, 16, 64), {336, 64}, 2),
            ".z 0+64 .x 64+64 .B 128+16 .C 144+16 .dt 160+8");
  EXPECT_EQ(dump(KeySplit::kMambaConv, mamba_model(16, 8, 2, 16, 64), {192}, 2), ".x 0+64 .B 64+16 .C 80+16");
  EXPECT_EQ(dump(KeySplit::kMlaDown, mla_model(6, 4, 2, 8), {12, 8}, 1),
            "linear_q_down_proj 0+6 linear_kv_down_proj 6+6");
}

TEST(Pieces, HaveTheseKeys) {
  Piece gate{"_w", 0, 1}, query{".query", 0, 1}, down{"linear_q_down_proj", 0, 1};
  EXPECT_EQ(piece_key(KeySplit::kSwiglu, "a.linear_fc1.weight3", gate), "a.linear_fc1.weight3_w");
  EXPECT_EQ(piece_key(KeySplit::kGdnConv, "a.conv1d.weight", query), "a.conv1d.weight.query");
  EXPECT_EQ(piece_key(KeySplit::kMlaDown, "a.linear_qkv_down_proj.weight", down),
            "a.linear_q_down_proj.weight");
  EXPECT_EQ(thrown_by([&] { piece_key(KeySplit::kMlaDown, "a.linear_fc1.weight", down); }),
            "MC2012 tensor 'a.linear_fc1.weight': the key has no module linear_qkv_down_proj");
}

struct Split {
  std::string_view rule;
  KeySplit split;
};
constexpr Split kSplits[] = {
    {"gated_mlp", KeySplit::kSwiglu},        {"gated_expert_interleaved", KeySplit::kSwiglu},
    {"gdn_in_proj", KeySplit::kGdnInProj},   {"gdn_in_proj_grouped", KeySplit::kGdnInProj},
    {"gdn_conv", KeySplit::kGdnConv},        {"mamba_in_proj", KeySplit::kMambaInProj},
    {"mamba_conv", KeySplit::kMambaConv},    {"mla_down", KeySplit::kMlaDown},
    {"gated_mlp_joined", KeySplit::kSwiglu},
};

// The items that each key stores: slot and item, of all cells in turn.
std::vector<std::vector<std::pair<i32, i64>>> contents(const RuleCase& c, KeySplit split) {
  std::vector<std::vector<std::pair<i32, i64>>> keys;
  bool replicated = hold_case(c, 0).partition_dim < 0;
  Part all{0, replicated ? 1 : c.parts};
  for (all.index = 0; all.index < all.count; all.index++) {
    Holding h = hold_case(c, all.index);
    const Shape& local = h.shape.shape;
    std::vector<Piece> pieces = pieces_of(split, c.model, global_shape(h, c.parts), all);
    keys.resize(pieces.size());
    i64 row = 0;
    for (std::size_t i = 0; i < pieces.size(); i++) {
      EXPECT_EQ(pieces[i].first_row, row) << to_string(c);
      row += pieces[i].rows;
      for (const ItemRun& run : cut(h.runs, items_of(pieces[i], local.row_items())))
        for (i64 at = 0; at < run.items(); at++) keys[i].push_back({run.slot, run.at(at)});
    }
    EXPECT_EQ(row, local[0]) << to_string(c);
  }
  return keys;
}

TEST(Pieces, TileTheLocalRowsAndDoNotDependOnTheCells) {
  for (const Split& s : kSplits) {
    std::size_t checked = 0;
    for (const RuleCase& c : cases_of(s.rule)) {
      RuleCase one = c;
      one.parts = 1;
      ASSERT_EQ(contents(c, s.split), contents(one, s.split)) << to_string(c);
      checked += c.parts > 1;
    }
    EXPECT_GT(checked, 100u) << s.rule;
  }
}

TEST(Pieces, AreTheSourcesWhereTheyHaveTheirOwn) {
  for (const RuleCase& c : cases_of("gated_mlp")) {
    auto keys = contents(c, KeySplit::kSwiglu);
    for (i32 slot : {0, 1})
      for (i64 item = 0; item < c.sources[0].items(); item++)
        ASSERT_EQ(keys[static_cast<std::size_t>(slot)][static_cast<std::size_t>(item)],
                  std::pair(slot, item));
  }
}

// Four ranks share fc1 [10, 4] as a flat buffer cuts it. The halves are halves of the parameter, whatever a
// rank holds: taken from the 16 items that rank 0 has, they would be rows 0-1 and 2-3.
TEST(Pieces, OfAShardAreCutsOfTheParametersPieces) {
  std::vector<Piece> pieces = pieces_of(KeySplit::kSwiglu, {}, {{10, 4}}, {});
  std::string out;
  for (ItemRange shard : {ItemRange{0, 16}, {16, 32}, {32, 40}, {40, 40}}) {
    for (const Piece& p : pieces) {
      ItemRange whole = items_of(p, 4), part = intersection(shard, whole);
      out += part.empty() ? cat(p.name, " - ")
                          : cat(p.name, " ", part.items() / 4, "@", (part.begin - whole.begin) / 4, " ");
    }
    out += "| ";
  }
  EXPECT_EQ(out, "_w 4@0 _v - | _w 1@4 _v 3@0 | _w - _v 2@3 | _w - _v - | ");
}

TEST(Pieces, RefuseWhatIsNotMadeOfThem) {
  auto refusal = [](KeySplit split, const ModelConfig& model, const Shape& global, i64 parts) {
    return thrown_by([&] { pieces_of(split, model, {global}, {0, parts}); });
  };
  EXPECT_EQ(
      refusal(KeySplit::kSwiglu, {}, {7, 4}, 1),
      "MC2012 a gated parameter has two halves of the same number of rows: expected an even first dimension "
      "of the whole parameter, found [7, 4]");
  EXPECT_EQ(refusal(KeySplit::kSwiglu, {}, Shape{}, 1).substr(0, 6), "MC2012");
  EXPECT_EQ(refusal(KeySplit::kSwiglu, {}, {10, 4}, 2),
            "MC0201 part _w of a parameter of shape [10, 4] does not divide by the parallel size: expected a "
            "multiple of 2, found 5");
  EXPECT_EQ(
      refusal(KeySplit::kGdnInProj, gdn_model(2, 2, 3, 3, 4), {27, 4}, 1),
      "MC2012 the rows of a fused parameter are not the sum of its parts: expected 28 rows, found [27, 4]");
  EXPECT_EQ(refusal(KeySplit::kGdnConv, gdn_model(2, 3, 3, 3, 4), {21, 1, 4}, 1),
            "MC2010 the number of linear-attention value heads does not divide by the number of key heads: "
            "expected a multiple of 2, found 3");
  EXPECT_EQ(refusal(KeySplit::kMambaConv, mamba_model(4, 2, 2, 3, 4), {21}, 1).substr(0, 6), "MC2012");
  EXPECT_EQ(refusal(KeySplit::kMambaInProj, {}, {21}, 1).substr(0, 6), "MC2010");
  EXPECT_EQ(
      refusal(KeySplit::kMlaDown, mla_model(0, 4, 2, 8), {12, 8}, 1),
      "MC2010 the model's configuration does not give the query rank: expected a positive number, found 0");
  i64 huge = i64{1} << 62;
  EXPECT_EQ(refusal(KeySplit::kGdnInProj, gdn_model(huge, huge, 4, 4, 4), {12, 8}, 1).substr(0, 6), "MC0101");
}

}  // namespace pieces_test
}  // namespace mckpt::impl
