#include "mappings/grouped_names.h"

#include <gtest/gtest.h>

#include "tests/support/throws.h"

namespace mckpt {
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
  EXPECT_EQ(refusal("[*-]M[*E]", {kAttentionAlone, kMlpAlone, kMambaAlone, kAttentionAlone, kExpertsAlone}),
            "nothing");
  EXPECT_NE(refusal("[*-]M", {kMambaAlone, kAttentionAlone, kMlpAlone}).find("expected M*-, with brackets"),
            std::string::npos);
}

TEST(OtherPattern, IsRefusedForAModelThatHasNone) {
  struct Case {
    LayerSpec layer;
    const char* words;
  };
  for (const Case& c :
       {Case{{Mixer::kAttention, Ffn::kMoe}, "layer 1 is attention and a mixture of experts at once"},
        Case{{Mixer::kLatentAttention, Ffn::kDense}, "layer 1 is latent attention and a dense MLP at once"},
        Case{{Mixer::kGdn, Ffn::kNone}, "layer 1 is a gated delta net"}}) {
    std::string text = refusal("[*E][*E]", {kAttentionAlone, c.layer});
    EXPECT_NE(text.find(c.words), std::string::npos) << text;
    EXPECT_EQ(text.find('?'), std::string::npos) << text;
  }
}

}  // namespace grouped_names_test
}  // namespace mckpt
