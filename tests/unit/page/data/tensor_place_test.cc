// Names of real checkpoints taken apart, and what must not be taken for a number.
#include "page/data/tensor_place.h"

#include <gtest/gtest.h>

namespace mckpt::impl::tensor_place_test {

struct Case {
  std::string_view name, section;
  i64 layer;
  std::string_view before;
  i64 member;
  std::string_view after;
};

TEST(TensorPlace, IsReadFromNamesOfAllKinds) {
  const Case cases[] = {
      {"model.embed_tokens.weight", "", -1, "model.embed_tokens.weight", -1, ""},
      {"model.layers.3.input_layernorm.weight", "model.layers", 3, "input_layernorm.weight", -1, ""},
      {"model.layers.3.mlp.experts.17.up_proj.weight", "model.layers", 3, "mlp.experts.", 17,
       ".up_proj.weight"},
      {"decoder.layers.10.mlp.experts.linear_fc1.weight12_w", "decoder.layers", 10,
       "mlp.experts.linear_fc1.weight", 12, "_w"},
      {"decoder.layers.mlp.experts.linear_fc1.weight3", "", -1,
       "decoder.layers.mlp.experts.linear_fc1.weight", 3, ""},
      {"mp_rank_01_003/model.decoder.layers.0.mlp.linear_fc2.weight", "mp_rank_01_003/model.decoder.layers",
       0, "mlp.linear_fc2.weight", -1, ""},
      {"optimizer.state.module.decoder.layers.2.w.exp_avg", "optimizer.state.module.decoder.layers", 2,
       "w.exp_avg", -1, ""},
      // A number at the end of a name is a member of a list, and leading zeros, letters or ten digits are not
      // a number.
      {"list.7", "", -1, "list.", 7, ""},
      {"7.weight", "", -1, "", 7, ".weight"},
      {"model.layers.03.w", "", -1, "model.layers.03.w", -1, ""},
      {"model.conv1d.weight", "", -1, "model.conv1d.weight", -1, ""},
      {"a.1234567890.b", "", -1, "a.1234567890.b", -1, ""},
      {"", "", -1, "", -1, ""},
  };
  for (const Case& c : cases) {
    const TensorPlace p = tensor_place(c.name);
    EXPECT_EQ(p.section, c.section) << c.name;
    EXPECT_EQ(p.layer, c.layer) << c.name;
    EXPECT_EQ(p.before, c.before) << c.name;
    EXPECT_EQ(p.member, c.member) << c.name;
    EXPECT_EQ(p.after, c.after) << c.name;
    std::string again = p.layer < 0 ? "" : p.section + "." + std::to_string(p.layer) + ".";
    again += p.before + (p.member < 0 ? "" : std::to_string(p.member)) + p.after;
    EXPECT_EQ(again, c.name);
  }
}

TEST(ModulePart, IsGuessedByWords) {
  EXPECT_EQ(module_part("model.layers.0.mlp.gate.weight"), ModulePart::kRouter);
  EXPECT_EQ(module_part("model.layers.0.mlp.gate_proj.weight"), ModulePart::kMlp);
  EXPECT_EQ(module_part("model.layers.0.mlp.experts.3.gate_proj.weight"), ModulePart::kExperts);
  EXPECT_EQ(module_part("model.layers.0.self_attn.q_norm.weight"), ModulePart::kNorm);
  EXPECT_EQ(module_part("model.layers.0.self_attn.q_proj.weight"), ModulePart::kAttention);
  EXPECT_EQ(module_part("lm_head.weight"), ModulePart::kEmbedding);
  EXPECT_EQ(module_part("optimizer.state.x.exp_avg"), ModulePart::kOptimizer);
  EXPECT_EQ(module_part("something"), ModulePart::kOther);
}

}  // namespace mckpt::impl::tensor_place_test
