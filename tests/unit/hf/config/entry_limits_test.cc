// Entries of config.json out of their limits, alone and in the config of a whole model.
#include "hf/config/entry_limits.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "hf/config/json.h"
#include "io/json/json.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace entry_limits_test {

using Doubts = std::vector<std::string>;

Doubts doubts_of(std::string_view text, i64 experts = 0, bool own_code = false) {
  return check_entry_limits(parse_json(text, JsonNumbers::kPython), experts, own_code);
}

std::string refusal_of(std::string_view text, i64 experts = 0, bool own_code = false) {
  return thrown_by([&] { doubts_of(text, experts, own_code); });
}

TEST(EntryLimits, RefuseNumbersThatNoModelComputesWith) {
  for (
      const auto& [text, found] : std::vector<std::pair<const char*, const char*>>{
          {R"({"rms_norm_eps": -1})", "'rms_norm_eps' is out of range: expected 0 or more, found -1"},
          {R"({"layer_norm_eps": -1e-5})",
           "'layer_norm_eps' is out of range: expected 0 or more, found -1e-5"},
          {R"({"rms_norm_eps": NaN})", "'rms_norm_eps' is out of range: expected 0 or more, found NaN"},
          {R"({"attention_dropout": -1})", "'attention_dropout' is out of range: expected 0 to 1, found -1"},
          {R"({"rope_theta": 0})", "'rope_theta' is out of range: expected a positive number, found 0"},
          {R"({"rope_theta": [1e4, -1]})",
           "'rope_theta' is out of range: expected a positive number, found -1"},
          {R"({"rope_theta": []})", "'rope_theta' is empty: expected a positive number, found an empty list"},
          {R"({"partial_rotary_factor": 7})",
           "'partial_rotary_factor' is out of range: expected more than 0, at most 1, found 7"},
          {R"({"partial_rotary_factor": 0})",
           "'partial_rotary_factor' is out of range: expected more than 0, at most 1, found 0"},
          {R"({"text_config": {"rope_parameters": {"rope_theta": -0.5}}})",
           "'text_config.rope_parameters.rope_theta' is out of range: expected a positive number, found -0.5"},
          {R"({"rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 0}}})",
           "'rope_parameters.full_attention.factor' is out of range: expected a positive number, found 0"}})
    EXPECT_EQ(refusal_of(text), cat("MC2001 ", found)) << text;
}

TEST(EntryLimits, TakeWhatModelsComputeWith) {
  for (const char* text :
       {R"({"rms_norm_eps": 0})", R"({"rms_norm_eps": 0.0})", R"({"rope_theta": 0.5})",
        R"({"rope_theta": [1e4, 5e6]})", R"({"rope_theta": Infinity})", R"({"partial_rotary_factor": 1})",
        R"({"hidden_act": "swish"})", R"({"rope_scaling": {"type": "su"}})",
        R"({"vision_config": {"rope_theta": 0}})",
        R"({"rope_scaling": {"rope_type": "dynamic", "factor": 0.5}})", R"({"num_experts_per_tok": 0})"})
    EXPECT_EQ(doubts_of(text), Doubts{}) << text;
}

TEST(EntryLimits, KnowHowManyExpertsThereAre) {
  constexpr const char* kText = R"({"num_experts_per_tok": 4})";
  EXPECT_EQ(doubts_of(kText, 4), Doubts{});
  EXPECT_EQ(refusal_of(kText, 3),
            "MC2001 'num_experts_per_tok' is out of range: expected 1 to 3, the number of experts, found 4");
  EXPECT_EQ(
      refusal_of(R"({"text_config": {"top_k_experts": 0}})", 4),
      "MC2001 'text_config.top_k_experts' is out of range: expected 1 to 4, the number of experts, found 0");
}

TEST(EntryLimits, RefuseWordsThatNobodyKnows) {
  for (const char* word : {"SILU", "silu ", "", "nonsense"})
    for (const char* key : {"hidden_act", "hidden_activation", "mlp_hidden_act", "activation_function"}) {
      const std::string entry = cat("{\"", key, "\": \"", word, "\"}");
      const std::string expected = cat(
          "' is not known: expected an activation of transformers, such as silu or gelu_pytorch_tanh, found \"",
          word, "\"");
      EXPECT_EQ(refusal_of(entry), cat("MC2001 '", key, expected));
      EXPECT_EQ(refusal_of(cat("{\"vision_config\": ", entry, "}")),
                cat("MC2001 'vision_config.", key, expected));
      EXPECT_EQ(doubts_of(cat("{\"speculator\": ", entry, "}")), Doubts{});  // nobody reads it
    }
  for (const char* key : {"rope_type", "type"})
    EXPECT_EQ(refusal_of(cat(R"({"rope_scaling": {")", key, R"(": "nonsense"}})")),
              cat("MC2001 'rope_scaling.", key,
                  "' is not known: expected a type of transformers, such as default, linear, yarn or llama3, "
                  "found \"nonsense\""));
  // Code beside the weights may know it.
  EXPECT_EQ(
      doubts_of(R"({"hidden_act": "nonsense"})", 0, true),
      Doubts{"config.json has hidden_act nonsense, which transformers does not know: args cannot say it"});
}

TEST(EntryLimits, DoubtNulls) {
  EXPECT_EQ(
      doubts_of(R"({"rms_norm_eps": null, "attention_bias": null, "hidden_act": null})"),
      (Doubts{"config.json has rms_norm_eps null, which transformers 5 refuses: it is not written into args, "
              "where Megatron has 1e-05",
              "config.json has hidden_act null, which transformers 5 refuses: it is read as not given",
              "config.json has attention_bias null, which transformers 5 refuses: it is read as false"}));
  EXPECT_EQ(doubts_of(R"({"num_experts_per_tok": null, "rope_theta": null})", 4).size(), 2u);
  // A class keeps an entry that it does not have.
  for (auto& [type, refused] : std::vector<std::pair<const char*, Doubts>>{
           {"qwen3_moe", {"rms_norm_eps", "hidden_act", "attention_bias"}},
           {"nemotron", {"norm_eps", "hidden_act", "attention_bias", "mlp_bias"}},
           {"nemotron_h", {"layer_norm_epsilon", "mlp_hidden_act", "attention_bias", "mlp_bias"}},
           {"gemma3_text", {"rms_norm_eps", "hidden_activation", "attention_bias"}},
           {"mistral", {"rms_norm_eps", "hidden_act"}}}) {
    Doubts doubted;
    for (const char* key : {"rms_norm_eps", "layer_norm_epsilon", "norm_eps", "layernorm_epsilon",
                            "layer_norm_eps", "hidden_act", "hidden_activation", "mlp_hidden_act",
                            "activation_function", "attention_bias", "mlp_bias"})
      if (!doubts_of(cat(R"({"model_type": ")", type, R"(", ")", key, R"(": null})")).empty())
        doubted.push_back(key);
    EXPECT_EQ(doubted, refused) << type;
  }
  EXPECT_EQ(doubts_of(R"({"hidden_act": null, "hidden_activation": null})").size(), 1u);
  for (const char* text :
       {R"({"rms_norm_eps": null, "layer_norm_eps": 1e-5})", R"({"rope_theta": null, "rope_parameters": {}})",
        R"({"model_type": "gemma3", "tie_word_embeddings": null})", R"({"num_experts_per_tok": null})",
        R"({"tie_word_embeddings": true, "text_config": {"tie_word_embeddings": null}})",
        R"({"hidden_act": null, "hidden_activation": "gelu"})",
        R"({"hidden_activation": null, "hidden_act": "gelu"})",
        R"({"model_type": "ministral3", "rope_theta": null})",
        R"({"model_type": "qwen2_audio", "tie_word_embeddings": null})"})
    EXPECT_EQ(doubts_of(text), Doubts{}) << text;
  EXPECT_EQ(doubts_of(R"({"model_type": "gemma3_text", "tie_word_embeddings": null})").size(), 1u);
  EXPECT_EQ(doubts_of(R"({"model_type": "deepseek_v3", "num_experts_per_tok": null})", 4), Doubts{});
}

constexpr std::string_view kLlama = R"({"model_type": "llama", "hidden_size": 8, "num_attention_heads": 2,
    "num_hidden_layers": 1, "intermediate_size": 16, "vocab_size": 32, "architectures": ["LlamaForCausalLM"], )";

TEST(EntryLimits, AreThoseOfEveryConfig) {
  auto read = [](const char* entry) { return read_hf_config(cat(kLlama, entry, "}")); };
  EXPECT_EQ(read(R"("rms_norm_eps": null)").doubts.size(), 1u);
  EXPECT_TRUE(thrown_by([&] { read(R"("rope_theta": -1)"); }).starts_with(code_name(Code::kBadConfig)));
  EXPECT_TRUE(thrown_by([&] { read(R"("hidden_act": "SILU")"); }).starts_with(code_name(Code::kBadConfig)));
  EXPECT_EQ(read(R"("hidden_act": "SILU", "auto_map": {})").doubts.size(), 1u);
  EXPECT_TRUE(read(R"("hidden_act": "swish")").model.text.swiglu);
  EXPECT_FALSE(read(R"("hidden_act": "gelu")").model.text.swiglu);
}

}  // namespace entry_limits_test
}  // namespace mckpt::impl
