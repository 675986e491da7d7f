#include "core/hybrid/spellings.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/hybrid/kind.h"
#include "core/hybrid/spelled.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace spellings_test {

struct Pair {
  const char *usual, *other;
};

// Whole names, as far as checkpoints have them: whatever precedes and follows.
constexpr Pair kPairs[] = {
    {"decoder.layers.0.mixer.conv1d_weight", "decoder.layers.0.mixer.conv1d.weight"},
    {"decoder.layers.12.layers.3.mixer.conv1d_bias", "decoder.layers.12.layers.3.mixer.conv1d.bias"},
    {"decoder.layers.0.mixer.conv1d_weight.x", "decoder.layers.0.mixer.conv1d.weight.x"},
    {"decoder.layers.0.mixer.in_proj.layer_norm_weight", "decoder.layers.0.norm.weight"},
    {"decoder.layers.0.mixer.in_proj.layer_norm_bias", "decoder.layers.0.norm.bias"},
    {"decoder.layers.3.self_attention.linear_qkv.layer_norm_weight",
     "decoder.layers.3.input_layernorm.weight"},
    {"decoder.layers.self_attention.linear_qkv.layer_norm_bias", "decoder.layers.input_layernorm.bias"},
    {"decoder.layers.3.self_attention.in_proj.layer_norm_weight", "decoder.layers.3.input_layernorm.weight"},
    {"mtp.layers.0.mtp_model_layer.layers.1.mlp.linear_fc1.layer_norm_weight",
     "mtp.layers.0.mtp_model_layer.layers.1.pre_mlp_layernorm.weight"},
    {"decoder.layers.0.self_attention.linear_q_up_proj.layer_norm_weight",
     "decoder.layers.0.self_attention.q_layernorm.weight"},
    {"decoder.layers.0.self_attention.linear_kv_up_proj.layer_norm_weight",
     "decoder.layers.0.self_attention.kv_layernorm.weight"},
    {"vision_model.decoder.layers.1.self_attention.linear_qkv.layer_norm_bias",
     "vision_model.decoder.layers.1.input_layernorm.bias"},
    {"decoder.final_norm.weight", "decoder.final_layernorm.weight"},
    {"language_model.decoder.final_layernorm.bias", "language_model.decoder.final_norm.bias"},
};

TEST(OtherName, ReplacesTheUsualOneWhateverIsAroundIt) {
  for (const Pair& p : kPairs) {
    std::optional<Respelt> other = other_name(p.usual);
    ASSERT_TRUE(other) << p.usual;
    EXPECT_EQ(other->name, p.other);
  }
}

TEST(OtherName, IsNoneForParametersWithOneName) {
  for (const char* name :
       {"decoder.layers.0.mixer.norm.weight", "decoder.layers.0.pre_mlp_layernorm.weight",
        "decoder.layers.0.input_layernorm.weight", "decoder.layers.0.self_attention.conv1d.weight",
        "decoder.layers.0.self_attention.q_layernorm.weight", "mtp.layers.0.final_layernorm.weight",
        "decoder.layers.0.mlp.shared_experts.linear_fc1.weight",
        "decoder.layers.0.self_attention.out_norm.weight", "decoder.layers.0.my_mixer.conv1d_weight",
        "decoder.layers.0.mixer.conv1d_kernel", ""})
    EXPECT_FALSE(other_name(name)) << name;
}

// The kind of the layer decides what an input_layernorm could be fused with.
TEST(UsualRest, IsThatOfTheKindOfLayer) {
  constexpr SpellingKind kNorm = SpellingKind::kUnfusedNorm, kConv = SpellingKind::kSubmoduleConv;
  auto usual = [](SpellingKind why, LayerKind kind, const char* rest) {
    return usual_rest(why, kind, rest).value_or("none");
  };
  EXPECT_EQ(usual(kNorm, LayerKind::kAttention, "input_layernorm.weight"),
            "self_attention.linear_qkv.layer_norm_weight");
  EXPECT_EQ(usual(kNorm, LayerKind::kGdn, "input_layernorm.weight"),
            "self_attention.in_proj.layer_norm_weight");
  EXPECT_EQ(usual(kNorm, LayerKind::kLatentAttention, "input_layernorm.weight"), "none");
  EXPECT_EQ(usual(kNorm, LayerKind::kMamba, "norm.bias"), "mixer.in_proj.layer_norm_bias");
  EXPECT_EQ(usual(kNorm, LayerKind::kMamba, "mixer.norm.weight"), "none");
  EXPECT_EQ(usual(kNorm, LayerKind::kMlp, "pre_mlp_layernorm.weight"), "mlp.linear_fc1.layer_norm_weight");
  EXPECT_EQ(usual(kNorm, LayerKind::kMoe, "pre_mlp_layernorm.weight"), "none");
  EXPECT_EQ(usual(kNorm, LayerKind::kMamba, "mixer.conv1d.weight"), "none");
  EXPECT_EQ(usual(kConv, LayerKind::kMamba, "mixer.conv1d.weight"), "mixer.conv1d_weight");
  EXPECT_EQ(usual(kConv, LayerKind::kGdn, "self_attention.conv1d.weight"), "none");
}

TEST(UsualConv, IsFoundAnywhere) {
  EXPECT_EQ(with_usual_conv("a.layers.0.mixer.conv1d.bias"), "a.layers.0.mixer.conv1d_bias");
  EXPECT_EQ(with_usual_conv("mixer.conv1d_weight"), "mixer.conv1d_weight");
  EXPECT_EQ(with_usual_conv("self_attention.conv1d.weight"), "self_attention.conv1d.weight");
}

TEST(Layer, EndsBeforeTheParameter) {
  for (const char* name : {"decoder.layers.3.mlp.x", "decoder.layers.0.layers.11.mlp.x",
                           "decoder.layers.mlp.x", "mtp.layers.0.mtp_model_layer.layers.1.mlp.x"})
    EXPECT_EQ(std::string_view(name).substr(end_of_layer(name)), "mlp.x") << name;
  for (const char* name : {"decoder.final_norm.weight", "layers.0.mlp.x", "embedding.players.3.x"})
    EXPECT_EQ(end_of_layer(name), 0u) << name;
}

std::string found_in(std::initializer_list<const char*> names) {
  SpellingEvidence evidence;
  for (const char* name : names) evidence.add(name);
  return to_string(evidence.found());
}

// By the names alone: a norm of its own is another spelling only where its layer has something to fuse it
// with.
TEST(SpellingEvidence, NeedsTheModuleThatCouldHaveTheNorm) {
  EXPECT_EQ(found_in({"decoder.layers.0.mixer.conv1d.weight", "decoder.layers.0.mixer.D"}), "submodule-conv");
  EXPECT_EQ(found_in({"decoder.layers.0.mixer.conv1d_weight", "decoder.layers.0.mixer.norm.weight"}), "");
  EXPECT_EQ(found_in({"decoder.layers.0.input_layernorm.weight",
                      "decoder.layers.0.self_attention.linear_qkv.weight"}),
            "unfused-norms");
  EXPECT_EQ(found_in({"decoder.layers.0.input_layernorm.weight",
                      "decoder.layers.1.self_attention.linear_qkv.weight"}),
            "");
  EXPECT_EQ(found_in({"decoder.layers.0.input_layernorm.weight",
                      "decoder.layers.0.self_attention.linear_q_up_proj.weight"}),
            "");
  EXPECT_EQ(found_in({"decoder.layers.0.pre_mlp_layernorm.weight",
                      "decoder.layers.0.mlp.experts.linear_fc1.weight0"}),
            "");
  EXPECT_EQ(found_in({"decoder.layers.pre_mlp_layernorm.weight", "decoder.layers.mlp.linear_fc1.weight"}),
            "unfused-norms");
  EXPECT_EQ(found_in({"decoder.layers.0.norm.weight", "embedding.word_embeddings.weight",
                      "decoder.layers.0.mixer.in_proj.weight.z", "decoder.layers.0.mixer.conv1d.bias.x"}),
            "submodule-conv, unfused-norms");
}

TEST(Spelling, SpellsOneNameEitherWay) {
  const Spelling usual, other = spelling_of(std::vector<std::string>{"submodule-conv", "unfused-norms"});
  struct Case {
    LayerKind kind;
    const char *usual, *other;
  };
  for (const Case& c :
       {Case{LayerKind::kMamba, "mixer.conv1d_weight", "mixer.conv1d.weight"},
        {LayerKind::kMamba, "mixer.in_proj.layer_norm_weight", "norm.weight"},
        {LayerKind::kAttention, "self_attention.linear_qkv.layer_norm_bias", "input_layernorm.bias"},
        {LayerKind::kGdn, "self_attention.in_proj.layer_norm_weight", "input_layernorm.weight"},
        {LayerKind::kMlp, "mlp.linear_fc1.layer_norm_weight", "pre_mlp_layernorm.weight"},
        {LayerKind::kMoe, "pre_mlp_layernorm.weight", "pre_mlp_layernorm.weight"},
        {LayerKind::kMamba, "mixer.A_log", "mixer.A_log"}})
    for (const char* name : {c.usual, c.other}) {
      EXPECT_EQ(spelled_rest(name, c.kind, usual), c.usual);
      EXPECT_EQ(spelled_rest(name, c.kind, other), c.other);
    }
  EXPECT_TRUE(has_unfused_norms(other));
  EXPECT_FALSE(has_unfused_norms(spelling_of(std::vector<std::string>{"submodule-conv"})));
}

TEST(Spelling, HasWords) {
  auto of = [](std::vector<std::string> words) { return to_string(spelling_of(words)); };
  EXPECT_EQ(of({}), "");
  EXPECT_EQ(of({"unfused-norms"}), "unfused-norms");
  EXPECT_EQ(of({"unfused-norms", "submodule-conv"}), "submodule-conv, unfused-norms");
  EXPECT_EQ(of({"usual"}), "");
  EXPECT_NE(thrown_by([&] { of({"usual", "unfused-norms"}); }).find("a word alone"), std::string::npos);
  EXPECT_EQ(of({"mtp-transformer-layer", "unfused-norms"}), "unfused-norms, mtp-transformer-layer");
  std::string told = thrown_by([&] { of({"dots"}); });
  EXPECT_NE(told.find("expected submodule-conv, unfused-norms or usual, found"), std::string::npos) << told;
  const std::vector<std::string> dots = {"dots"};
  told = thrown_by([&] { spelling_of(dots, true); });
  EXPECT_NE(told.find("submodule-conv, unfused-norms, usual or mtp-transformer-layer"), std::string::npos)
      << told;
}

}  // namespace spellings_test
}  // namespace mckpt::impl
