// Names of tied tensors in models of transformers, and names that look like them.
#include "hf/folder/tied_names.h"

#include <gtest/gtest.h>

namespace mckpt::impl {
namespace tied_names_test {

TEST(TieOfNames, KnowsTheTiesOfTransformers) {
  const struct {
    Tie tie;
    const char *one, *other;
  } kCases[] = {
      {Tie::kHead, "lm_head.weight", "model.embed_tokens.weight"},
      {Tie::kHead, "lm_head.weight", "transformer.wte.weight"},
      {Tie::kHead, "lm_head.weight", "ref.model.embed_tokens.weight"},
      {Tie::kHead, "proj_out.weight", "model.decoder.embed_tokens.weight"},
      {Tie::kHead, "cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
      {Tie::kHead, "lm_head.decoder.weight", "esm.embeddings.word_embeddings.weight"},
      {Tie::kHead, "text_model.lm_head.weight", "text_model.model.embed_tokens.weight"},
      {Tie::kHead, "decoder.weight", "model.embeddings.tok_embeddings.weight"},
      {Tie::kModule, "encoder.embed_tokens.weight", "shared.weight"},
      {Tie::kModule, "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"},
      {Tie::kModule, "prophetnet.decoder.word_embeddings.weight", "prophetnet.word_embeddings.weight"},
      {Tie::kModule, "decoder.embed_tokens.weight", "encoder.text_model.embed_tokens.weight"},
      {Tie::kModule, "cls.predictions.decoder.bias", "cls.predictions.bias"},
      {Tie::kModule, "mlm_head.bias", "mlm_head.decoder.bias"},
      {Tie::kModule, "encoder.embed_patches.proj.bias", "patch_embed.proj.bias"},

      {Tie::kNone, "text_model.lm_head.weight", "model.embed_tokens.weight"},
      {Tie::kNone, "ref.lm_head.weight", "model.embed_tokens.weight"},
      {Tie::kNone, "ref.cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
      {Tie::kNone, "ref.model.embed_tokens.weight", "model.embed_tokens.weight"},
      {Tie::kNone, "a.encoder.embed_tokens.weight", "b.shared.weight"},
      {Tie::kNone, "my_lm_head.weight", "model.embed_tokens.weight"},
      {Tie::kNone, "a.predictions.decoder.bias", "b.predictions.bias"},
      {Tie::kNone, "encoder.embed_patches.proj.bias", "patch_embed.proj.weight"},
      {Tie::kNone, "a.encoder.embed_patches.proj.bias", "patch_embed.proj.bias"},
      {Tie::kNone, "lm_head.weight", "lm_head.bias"},
  };
  for (const auto& [tie, one, other] : kCases) {
    EXPECT_EQ(tie_of_names(one, other), tie) << one << " " << other;
    EXPECT_EQ(tie_of_names(other, one), tie) << other << " " << one;
    EXPECT_TRUE(tie == Tie::kNone || (has_name_of_tie(one) && has_name_of_tie(other))) << one;
  }
  EXPECT_FALSE(has_name_of_tie("model.layers.0.mlp.up_proj.weight"));
  EXPECT_FALSE(has_name_of_tie("x.decoder.bias"));
}

}  // namespace tied_names_test
}  // namespace mckpt::impl
