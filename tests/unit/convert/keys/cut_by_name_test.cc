// The names say what the modules of real ranks say: marks.txt has the dimension of every parameter of every
// golden model.
#include "convert/keys/cut_by_name.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "core/base/text.h"
#include "mappings/family.h"
#include "mappings/registry.h"
#include "mappings/row.h"
#include "mappings/rule.h"

namespace mckpt::impl {
namespace cut_by_name_test {

TEST(CutByName, IsWhatMegatronMarks) {
  std::ifstream marks(MCKPT_TEST_DATA "/golden/marks.txt");
  int looked = 0, unknown = 0;
  for (std::string line; std::getline(marks, line);) {
    std::istringstream words(line);
    std::string model, name, mark;
    words >> model >> name >> mark;
    const std::optional<int> cut = cut_by_name(name);
    looked++;
    EXPECT_EQ(is_own_module(name),
              !name.starts_with("vision_model.") || name.starts_with("vision_model.decoder.layers."))
        << line;
    // A module that does not mark what it cuts.
    if (!cut) {
      unknown++;
      EXPECT_NE(name.find("softmax_offset"), name.npos) << line;
      continue;
    }
    EXPECT_EQ(*cut, mark == "-" ? -1 : std::stoi(mark)) << line;
  }
  EXPECT_GT(looked, 400);
  EXPECT_LT(unknown, 5);
}

TEST(CutByName, KnowsNothingOfOtherNames) {
  EXPECT_FALSE(cut_by_name("model.layers.0.self_attn.q_proj.weight"));
  EXPECT_FALSE(cut_by_name("0.exp_avg"));
  EXPECT_FALSE(cut_by_name(""));
}

// The dimension by the rule of a family's row; nothing for rules by which several ranks may have the same part.
std::optional<int> cut_of_rule(std::string_view rule) {
  if (rule == "column_by_group") return std::nullopt;
  if (rule.find("replicate") != rule.npos || rule.find("norm") != rule.npos) return -1;
  return rule.starts_with("row") || rule.starts_with("expert_row") ? 1 : 0;
}

TEST(CutByName, IsWhatTheRulesOfEveryFamilySay) {
  int compared = 0;
  for (const Family* family : all_families())
    for (const Section& section : family->sections)
      for (const RowList& list : row_lists(section))
        for (const Row& row : list.rows) {
          const std::string name = cat(section.megatron, row.megatron);
          constexpr int kUnknown = -2;
          const int cut = is_own_module(name) ? cut_by_name(name).value_or(kUnknown) : kUnknown;
          // Norms of all heads at once, which have the names of norms of one head.
          const bool wide_norm = name.ends_with("_layernorm.weight") && row.rule.starts_with("column");
          if (cut == kUnknown || wide_norm) continue;
          compared++;
          const std::string where = cat(family->name, " ", name, " ", row.rule);
          EXPECT_EQ(cut, cut_of_rule(row.rule).value_or(kUnknown)) << where;
          const bool parts = cut >= 0 && rule_named(row.rule).parts != KeySplit::kNone;
          EXPECT_FALSE(parts && cut_rows(name) == CutRows::kTogether) << where;
        }
  EXPECT_GT(compared, 1000);
}

TEST(CutByName, TowersThatAreCopiesAreNotOwnModules) {
  EXPECT_TRUE(is_own_module("decoder.layers.0.self_attention.linear_qkv.weight"));
  EXPECT_TRUE(is_own_module("thinker.language_model.decoder.layers.0.mlp.linear_fc1.weight"));
  for (const char* copy :
       {"thinker.visual.blocks.0.mlp.linear_fc1.weight", "visual.blocks.0.mlp.linear_fc2.weight",
        "vision_model.transformer.resblocks.0.attn.out_proj.weight",
        "audio_tower.layers.0.self_attn.out_proj.weight",
        "vision_tower.vision_model.encoder.layers.0.self_attn.out_proj.weight"})
    EXPECT_FALSE(is_own_module(copy)) << copy;
}

TEST(CutByName, RowsOfSectionsAreApart) {
  EXPECT_EQ(cut_rows("decoder.layers.0.mlp.linear_fc1.weight"), CutRows::kGated);
  EXPECT_EQ(cut_rows("decoder.layers.0.mlp.experts.linear_fc1.weight3"), CutRows::kGated);
  EXPECT_EQ(cut_rows("decoder.layers.0.mixer.in_proj.weight"), CutRows::kSections);
  EXPECT_EQ(cut_rows("decoder.layers.0.mixer.conv1d.bias"), CutRows::kSections);
  EXPECT_EQ(cut_rows("decoder.layers.0.self_attention.linear_qkv.weight"), CutRows::kTogether);
}

}  // namespace cut_by_name_test
}  // namespace mckpt::impl
