// The entries that only the args of a run state, in the spellings of transformers 4 and 5.
#include "hf/config/run_entries.h"

#include <gtest/gtest.h>

#include "hf/config/fields.h"
#include "io/json/json.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace run_entries_test {

RunEntries entries_of(std::string_view text, bool own_code = true) {
  JsonValue json = parse_json(text, JsonNumbers::kPython);
  return read_run_entries(ConfigFields(json, ""), own_code);
}

TEST(RunEntries, AreThoseOfTransformers4) {
  RunEntries run = entries_of(R"({"rope_theta": 500000, "partial_rotary_factor": 0.5, "rms_norm_eps": 1e-5,
    "rope_scaling": {"type": "yarn", "factor": 40, "mscale": 1.0, "original_max_position_embeddings": 4096},
    "max_position_embeddings": 163840, "num_experts_per_tok": 8, "n_group": 8, "topk_group": 4,
    "routed_scaling_factor": 2.5, "norm_topk_prob": true, "head_dim": null})");
  EXPECT_EQ(run.rope.base, 500000);
  EXPECT_EQ(run.rope.percent, 0.5);
  EXPECT_EQ(run.rope.type, "yarn");
  EXPECT_EQ(run.rope.factor, 40);
  EXPECT_EQ(run.rope.mscale, 1);
  EXPECT_EQ(run.rope.original_positions, 4096);
  EXPECT_EQ(run.norm_epsilon.value_or(-1), 1e-5);
  EXPECT_EQ(run.positions, 163840);
  EXPECT_EQ(run.router.top_experts, 8);
  EXPECT_EQ(run.router.groups, 8);
  EXPECT_EQ(run.router.top_groups, 4);
  EXPECT_EQ(run.router.scale, 2.5);
  EXPECT_EQ(run.router.renormalised, true);
  EXPECT_EQ(run.head_dim, 0);
}

TEST(RunEntries, TakeTheRotatedItemsOfMiniMax) {
  constexpr std::string_view kRotated = R"("rotary_dim": 64, "head_dim": 128, "rope_theta": 5000000)";
  EXPECT_EQ(entries_of(cat("{", kRotated, "}")).rope.percent, 0.5);
  EXPECT_EQ(entries_of(cat("{", kRotated, R"(, "partial_rotary_factor": 0.25})")).rope.percent, 0.25);
  EXPECT_EQ(
      entries_of(cat("{", kRotated, R"(, "rope_parameters": {"partial_rotary_factor": 0.25}})")).rope.percent,
      0.25);
  EXPECT_EQ(entries_of(R"({"rotary_dim": 64})").rope.percent, 0);
}

// The classes of transformers stretch the embeddings, or rotate a part of each head, without a word in the config.
TEST(RunEntries, HaveTheDefaultOfTheClass) {
  const RopeEntries ministral =
      entries_of(
          R"({"model_type": "mistral3", "text_config": {"model_type": "ministral3", "rope_theta": 5}})")
          .rope;
  EXPECT_EQ(ministral.type, "yarn");
  EXPECT_EQ(ministral.base, 1e6);
  EXPECT_EQ(ministral.factor, 16);
  EXPECT_EQ(ministral.original_positions, 16384);
  const RopeEntries oss = entries_of(R"({"model_type": "gpt_oss", "rope_theta": 5})").rope;
  EXPECT_EQ(oss.type, "yarn");
  EXPECT_EQ(oss.base, 5);
  EXPECT_EQ(oss.factor, 32);
  for (const char* said :
       {R"("rope_parameters": {"rope_type": "default"})", R"("rope_scaling": {"factor": 2})"}) {
    const RopeEntries rope =
        entries_of(cat(R"({"model_type": "ministral3", "rope_theta": 5, )", said, "}")).rope;
    EXPECT_NE(rope.type, "yarn");
    EXPECT_EQ(rope.base, 5);
    EXPECT_EQ(rope.original_positions, 0);
  }
  EXPECT_EQ(
      entries_of(R"({"model_type": "qwen3_5", "text_config": {"model_type": "qwen3_5_text"}})").rope.percent,
      0.25);
  EXPECT_EQ(entries_of(R"({"model_type": "qwen3_next", "rope_scaling": {"type": "yarn"}})").rope.percent,
            0.25);
  EXPECT_EQ(entries_of(R"({"model_type": "glm4", "partial_rotary_factor": 0.75})").rope.percent, 0.75);
  EXPECT_EQ(entries_of(R"({"model_type": "glm4_moe_lite"})").rope.percent, 0);
  EXPECT_EQ(
      entries_of(
          R"({"model_type": "minimax_m3_vl", "text_config": {"model_type": "minimax_m3_vl_text", "head_dim": 128}})")
          .rope.percent,
      0.5);
}

TEST(RunEntries, TakeSarvamsWordForYarn) {
  for (const char* key : {"type", "rope_type"}) {
    RunEntries run = entries_of(cat(R"({"rope_theta": 10000, "rope_scaling": {")", key,
                                    R"(": "deepseek_yarn", "factor": 40, "beta_fast": 32}})"));
    EXPECT_EQ(run.rope.type, "yarn");
    EXPECT_EQ(run.rope.factor, 40);
  }
}

TEST(RunEntries, AreThoseOfTheLanguageModel) {
  RunEntries run = entries_of(R"({"text_config": {"rope_parameters": {"rope_theta": 10000000.0,
    "rope_type": "default", "mrope_section": [11, 11, 10], "partial_rotary_factor": 0.25},
    "intermediate_size": 176, "max_position_embeddings": 512}, "vision_config": {"intermediate_size": 7}})");
  EXPECT_EQ(run.rope.base, 10'000'000);
  EXPECT_EQ(run.rope.percent, 0.25);
  EXPECT_EQ(run.rope.sections, (std::vector<i64>{11, 11, 10}));
  EXPECT_EQ(run.ffn, 176);
  EXPECT_EQ(run.positions, 512);
  EXPECT_EQ(run.router.renormalised, std::nullopt);
}

// Rotary embeddings of each kind of layer are objects in an object.
// A config may have both objects; what the new one does not say is in the old one.
TEST(RunEntries, KeepsWhatTheNewObjectDoesNotSay) {
  RunEntries run = entries_of(R"({"rope_scaling": {"type": "yarn", "factor": 32, "mrope_section": [1, 2, 3]},
    "rope_parameters": {"rope_theta": 7.0, "beta_fast": 16}})");
  EXPECT_EQ(run.rope.type, "yarn");
  EXPECT_EQ(run.rope.factor, 32);
  EXPECT_EQ(run.rope.beta_fast, 16);
  EXPECT_EQ(run.rope.base, 7);
  EXPECT_EQ(run.rope.sections, (std::vector<i64>{1, 2, 3}));
}

TEST(RunEntries, MayBeMissing) {
  for (const char* text :
       {"{}", R"({"rope_scaling": null})", R"({"rope_parameters": {"full_attention": {}}})"}) {
    RunEntries run = entries_of(text);
    EXPECT_EQ(run.rope.base, 0);
    EXPECT_EQ(run.rope.type, "");
    EXPECT_FALSE(run.norm_epsilon.has_value());
    EXPECT_EQ(run.router.top_experts, 0);
  }
}

TEST(RunEntries, TellZeroFromNothing) {
  EXPECT_EQ(entries_of(R"({"rms_norm_eps": 0})").norm_epsilon.value_or(-1), 0);
  EXPECT_EQ(entries_of(R"({"rms_norm_eps": null, "layer_norm_eps": 0.5})").norm_epsilon.value_or(-1), 0.5);
}

TEST(RunEntries, NoteTheTypesOfKindsOfLayers) {
  const RopeEntries rope = entries_of(R"({"model_type": "gemma3_text", "rope_parameters": {"full_attention":
    {"rope_type": "linear", "factor": 8}, "sliding_attention": {"rope_type": "default"}}})")
                               .rope;
  EXPECT_EQ(rope.of_kinds, std::vector<std::string>{"full_attention: linear"});
}

TEST(RunEntries, NameTheLayersThatAloneAreStretched) {
  constexpr std::string_view kNoWindows = "layers without windows";
  for (const char* type : {"gemma3", "gemma3_text", "olmo3", "step3p5"})
    EXPECT_EQ(entries_of(cat(R"({"model_type": ")", type, "\"}")).rope.some_layers, kNoWindows) << type;
  EXPECT_EQ(entries_of(R"({"model_type": "deepseek_v4"})").rope.some_layers,
            "layers with compressed attention");
  EXPECT_EQ(entries_of(R"({"rope_local_base_freq": 10000})").rope.some_layers, kNoWindows);
  EXPECT_EQ(entries_of(R"({"model_type": "olmo2"})").rope.some_layers, "");
}

// tests/judges/absent_ropes.py asks the classes.
TEST(RunEntries, HaveTheShareThatTheClassReads) {
  auto share = [](const char* type, std::string_view entry, bool own_code) {
    const RopeEntries rope = entries_of(cat(R"({"model_type": ")", type, "\", ", entry, "}"), own_code).rope;
    return std::pair(rope.percent, rope.unread_percent);
  };
  using Shares = std::pair<double, double>;
  for (std::string_view entry : {R"("partial_rotary_factor": 0.75)", R"("rotary_dim": 6, "head_dim": 8)",
                                 R"("rope_parameters": {"partial_rotary_factor": 0.75})"}) {
    for (const char* type : {"glm4", "minimax_m2", "qwen3_5_text", "qwen4_exp_text", "bailing_moe_v2"})
      EXPECT_EQ(share(type, entry, false), Shares(0.75, 0)) << type << entry;
    for (const char* type : {"qwen3_moe", "llama", "gpt_oss", "qwen2_5_vl_text"}) {
      EXPECT_EQ(share(type, entry, false), Shares(0, 0.75)) << type << entry;
      EXPECT_EQ(share(type, entry, true), Shares(0.75, 0)) << type << entry;
    }
  }
}

TEST(RunEntries, OfAnotherTypeAreRefused) {
  EXPECT_TRUE(
      thrown_by([] { entries_of(R"({"rope_theta": "10000"})"); }).starts_with(code_name(Code::kBadConfig)));
  EXPECT_TRUE(thrown_by([] {
                entries_of(R"({"num_experts_per_tok": 2.5})");
              }).starts_with(code_name(Code::kBadConfig)));
  EXPECT_TRUE(
      thrown_by([] { entries_of(R"({"norm_topk_prob": 1})"); }).starts_with(code_name(Code::kBadConfig)));
}

}  // namespace run_entries_test
}  // namespace mckpt::impl
