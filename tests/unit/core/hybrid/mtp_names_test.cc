#include "core/hybrid/mtp_names.h"

#include <gtest/gtest.h>

namespace mckpt::impl {
namespace mtp_names_test {

using Names = std::vector<std::string>;

// Names as Megatron-Core 0.19 and 0.16 have them, also below the language model of a multimodal one.
constexpr const char* kPairs[][2] = {
    {"mtp.layers.0.mtp_model_layer.self_attention.linear_qkv.weight",
     "mtp.layers.0.transformer_layer.self_attention.linear_qkv.weight"},
    {"language_model.mtp.layers.12.mtp_model_layer.mlp.experts.linear_fc1.weight7_w",
     "language_model.mtp.layers.12.transformer_layer.mlp.experts.linear_fc1.weight7_w"},
};

TEST(MtpNames, OfALayer) {
  for (auto [usual, old] : kPairs) {
    EXPECT_EQ(mtp_names(usual), (Names{usual, old}));
    EXPECT_EQ(old_mtp_name(usual), old);
    EXPECT_EQ(with_usual_mtp(old), usual);
    EXPECT_EQ(with_usual_mtp(usual), usual);
    EXPECT_EQ(mtp_names(old), Names{old});
    EXPECT_FALSE(old_mtp_name(old));
  }
}

// Hybrid models have no MTP in the versions with the old names; torch_dist has them under both.
TEST(MtpNames, OfALayerOfAHybridModel) {
  const char *usual = "mtp.layers.0.mtp_model_layer.layers.1.mixer.in_proj.weight",
             *old = "mtp.layers.0.transformer_layer.layers.1.mixer.in_proj.weight";
  EXPECT_EQ(mtp_names(usual), (Names{usual, old}));
  EXPECT_EQ(with_usual_mtp(old), usual);
  EXPECT_FALSE(old_mtp_name(usual));
}

TEST(MtpNames, OfOtherParametersStay) {
  for (const char* name :
       {"mtp.layers.0.eh_proj.weight", "mtp.layers.0.final_layernorm.weight", "mtp.layers.0", "mtp.layers.",
        "decoder.layers.0.transformer_layer.mlp.linear_fc1.weight", "decoder.mtp_model_layer.weight",
        "mtp.layers.0.transformer_layer", "mtp.layers.0.transformer_layers.mlp.linear_fc1.weight",
        "mtp.layers.0.enorm.transformer_layer.weight", ""}) {
    EXPECT_EQ(with_usual_mtp(name), name);
    EXPECT_EQ(mtp_names(name), Names{name});
    EXPECT_FALSE(old_mtp_name(name)) << name;
  }
}

}  // namespace mtp_names_test
}  // namespace mckpt::impl
