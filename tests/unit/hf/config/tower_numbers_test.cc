// Numbers of configs that no table reads, in the spellings that releases have.
#include "hf/config/tower_numbers.h"

#include <gtest/gtest.h>

#include "io/json/json.h"

namespace mckpt::impl {
namespace tower_numbers_test {

TEST(TowerNumbers, AreThoseOfTheTextAndOfTheVisionTower) {
  TowerNumbers n = tower_numbers(
      parse_json(R"({"text_config": {"num_hidden_layers": 3, "num_attention_heads": 4, "head_dim": 6,
      "num_key_value_heads": 2, "hidden_size": 20}, "vision_config": {"num_heads": 2, "hidden_size": 16, "patch_size": 4,
      "temporal_patch_size": 2}})"));
  EXPECT_EQ(n.layers, 3);
  EXPECT_EQ(n.heads, 4);
  EXPECT_EQ(n.kv_heads, 2);
  EXPECT_EQ(n.head_dim, 6);
  EXPECT_EQ(n.vision_heads, 2);
  EXPECT_EQ(n.vision_hidden, 16);
  EXPECT_EQ(n.patch_side, 4);
  EXPECT_EQ(n.patch_frames, 2);
}

TEST(TowerNumbers, OfATextModelAreTheConfigsOwnAndFollowFromTheWidth) {
  TowerNumbers n =
      tower_numbers(parse_json(R"({"num_attention_heads": 4, "hidden_size": 20, "head_dim": null})"));
  EXPECT_EQ(n.head_dim, 5);
  EXPECT_EQ(n.kv_heads, 4);
  EXPECT_EQ(n.vision_heads, 0);
}

TEST(TowerNumbers, ThatAreNoneAreAbsent) {
  for (const char* text :
       {R"({"num_attention_heads": "4"})", R"({"num_attention_heads": -4})",
        R"({"num_attention_heads": 4.5})", R"({"num_attention_heads": 99999999999999999999})",
        R"({"text_config": [], "vision_config": 7})", "[]"})
    EXPECT_EQ(tower_numbers(parse_json(text)).heads, 0) << text;
}

}  // namespace tower_numbers_test
}  // namespace mckpt::impl
