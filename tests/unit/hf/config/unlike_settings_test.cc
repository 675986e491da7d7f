// Which entries of two config.json say that a model computes otherwise.
#include "hf/config/unlike_settings.h"

#include <gtest/gtest.h>

#include "core/base/text.h"

namespace mckpt::impl {
namespace {

std::string unlike(std::string_view one, std::string_view other) {
  std::string out;
  for (const UnlikeSetting& u : unlike_settings(one, other))
    out += cat(u.key, " ", u.one, " ", u.other, "; ");
  return out;
}

TEST(UnlikeSettings, AreEntriesOfBothWithOtherValues) {
  struct {
    const char *one, *other, *expected;
  } cases[] = {
      {R"({"hidden_act": "silu", "a": 1})", R"({"hidden_act": "gelu", "b": 2})", "hidden_act silu gelu; "},
      {R"({"eps": 1e-6, "n": 2, "x": true})", R"({"x": false, "n": 2.0, "eps": 0.000001})", "x true false; "},
      {R"({"text_config": {"n": 2}})", R"({"text_config": {"n": 3}})", "text_config.n 2 3; "},
      {R"({"types": ["a", "b"], "same": [1, {"c": 2}]})", R"({"types": ["a", "c"], "same": [1.0, {"c": 2}]})",
       "types an array an array; "},
      {R"({"window": null, "n": 1})", R"({"window": 4, "n": "1"})", "n 1 1; "},
      // Settings that do not change the computation.
      {R"({"torch_dtype": "a", "dtype": "a", "eos_token_id": 1, "attention_dropout": 0, "_name_or_path": "x"})",
       R"({"torch_dtype": "b", "dtype": "b", "eos_token_id": 2, "attention_dropout": 1, "_name_or_path": "y"})",
       ""},
      {R"({"transformers_version": "4", "use_cache": true, "output_attentions": true})",
       R"({"transformers_version": "5", "use_cache": false, "output_attentions": false})", ""},
      // The spellings of rotary embeddings.
      {R"({"rope_theta": 10000.0, "rope_scaling": {"type": "yarn", "factor": 4}})",
       R"({"rope_parameters": {"rope_theta": 1e6, "rope_type": "linear", "factor": 4.0}})",
       "rope_theta 10000.0 1e6; rope_type yarn linear; "},
  };
  for (const auto& c : cases) EXPECT_EQ(unlike(c.one, c.other), c.expected) << c.one;
}

TEST(UnlikeSizes, AreSettingsOfTensorsInAnyPart) {
  std::string out;
  for (const UnlikeSetting& u : unlike_sizes(
           R"({"model_type": "a", "head_dim": 4, "rope_theta": 1, "text_config": {"num_experts": 2}})",
           R"({"model_type": "b", "head_dim": 8, "rope_theta": 2, "text_config": {"num_experts": 4},
                        "hidden_size": 3})"))
    out += cat(u.key, " ", u.one, " ", u.other, "; ");
  EXPECT_EQ(out, "head_dim 4 8; model_type a b; text_config.num_experts 2 4; ");
}

}  // namespace
}  // namespace mckpt::impl
