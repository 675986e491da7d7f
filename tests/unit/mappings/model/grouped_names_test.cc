#include "mappings/model/grouped_names.h"

#include <gtest/gtest.h>

#include "core/hybrid/pattern.h"
#include "core/hybrid/pattern_fault.h"
#include "mappings/config.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace grouped_names_test {

std::string refusal(const char* pattern, std::vector<LayerSpec> layers) {
  ModelConfig model;
  model.text.layers = std::move(layers);
  return thrown_by([&] { refuse_other_pattern(parse_pattern(pattern, Dialect::kGrouped), model); });
}

constexpr LayerSpec kMambaAlone = {Mixer::kMamba, Ffn::kNone},
                    kAttentionAlone = {Mixer::kAttention, Ffn::kNone},
                    kMlpAlone = {Mixer::kNone, Ffn::kDense}, kExpertsAlone = {Mixer::kNone, Ffn::kMoe};

TEST(OtherPattern, IsRefusedWithThatOfTheModel) {
  const std::string flat = refusal("*-M", {kMambaAlone, kAttentionAlone, kMlpAlone});
  EXPECT_NE(flat.find("expected M*-"), std::string::npos) << flat;
  EXPECT_EQ(flat.find("brackets"), std::string::npos) << flat;
  EXPECT_EQ(refusal("[*-]M[*E]", {kAttentionAlone, kMlpAlone, kMambaAlone, kAttentionAlone, kExpertsAlone}),
            "nothing");
  EXPECT_NE(refusal("[*-]M", {kMambaAlone, kAttentionAlone, kMlpAlone}).find("expected M*-, with brackets"),
            std::string::npos);
}

TEST(HybridPattern, HasASymbolForEveryKindOfLayer) {
  ModelConfig model;
  model.text.layers = {kMambaAlone, kMlpAlone, kExpertsAlone, {Mixer::kGdn, Ffn::kNone}};
  model.text.layers.push_back({Mixer::kLatentAttention, Ffn::kNone});
  EXPECT_EQ(hybrid_pattern(model), "M-EG+");
  EXPECT_EQ(refusal("[M-]E[G+]", model.text.layers), "nothing");
  model.mtp.depths = 2;
  model.mtp.layers = {kAttentionAlone, kExpertsAlone};
  EXPECT_EQ(hybrid_pattern(model), "M-EG+/*E/*E");
  model.text.layers.push_back({});
  EXPECT_EQ(hybrid_pattern(model), "");
}

TEST(OtherPattern, IsRefusedWhereItsMtpPartIsNotThatOfTheModel) {
  ModelConfig model;
  model.text.layers = {kMambaAlone, kAttentionAlone};
  model.mtp.depths = 1;
  model.mtp.layers = {kAttentionAlone, kExpertsAlone};
  auto told = [&](const char* text) {
    return thrown_by([&] { refuse_other_pattern(parse_pattern(text, Dialect::kGrouped), model); });
  };
  EXPECT_EQ(told("[M*]/*E"), "nothing");
  for (const char* other : {"[M*]", "[M*]/*-", "[M*]/*E/*E"})
    EXPECT_NE(told(other).find("expected M*/*E, with brackets"), std::string::npos) << other;
}

TEST(OtherPattern, IsRefusedForAModelThatHasNone) {
  struct Case {
    LayerSpec layer;
    const char* words;
  };
  for (const Case& c :
       {Case{{Mixer::kAttention, Ffn::kMoe}, "layer 1 is attention and a mixture of experts at once"},
        Case{{Mixer::kLatentAttention, Ffn::kDense},
             "layer 1 is latent attention and a dense MLP at once"}}) {
    std::string text = refusal("[*E][*E]", {kAttentionAlone, c.layer});
    EXPECT_NE(text.find(c.words), std::string::npos) << text;
    EXPECT_EQ(text.find('?'), std::string::npos) << text;
  }
}

}  // namespace grouped_names_test
}  // namespace mckpt::impl
