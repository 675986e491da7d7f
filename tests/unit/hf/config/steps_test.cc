// Steps of configs as data: what each kind reads and refuses, and that every table can be carried out.
#include "hf/config/steps.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "hf/config/fields.h"
#include "hf/config/named_parts.h"
#include "io/json/json.h"
#include "mappings/config_words.h"
#include "mappings/family.h"
#include "mappings/registry.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace steps_test {

using namespace config_steps;

ModelConfig read(const char* text, std::span<const ConfigStep> steps) {
  const JsonValue json = parse_json(text);
  ModelConfig m;
  read_steps(ConfigFields(json, ""), steps, m);
  return m;
}

std::string refusal(const char* text, const ConfigStep& step) {
  return thrown_by([&] { read(text, {&step, 1}); });
}

TEST(ConfigSteps, FillNumbersAndFlags) {
  constexpr ConfigStep kSteps[] = {size(kMoeFfn, "width", "old_width"),
                                   size_or(kFfn, "ffn", 7),
                                   count_or(kSharedFfn, "shared", 5),
                                   flag(kQkvBias, "bias", true),
                                   set(kQkNorm, true),
                                   fixed(kHeads, 4),
                                   same(kKvGroups, kHeads)};
  const ModelConfig m = read(R"({"old_width": 3, "shared": 0, "bias": false})", kSteps);
  EXPECT_EQ(m.moe.ffn, 3);
  EXPECT_EQ(m.text.ffn, 7);
  EXPECT_EQ(m.moe.shared_ffn, 0);
  EXPECT_FALSE(m.text.qkv_bias);
  EXPECT_TRUE(m.text.qk_norm);
  EXPECT_EQ(m.text.kv_groups, 4);
}

TEST(ConfigSteps, KnowBothNamesOfSilu) {
  const ConfigStep step{.kind = ConfigStep::Kind::kActivation};
  for (const auto& [text, silu] :
       {std::pair(R"({})", true), std::pair(R"({"hidden_act": "silu"})", true),
        std::pair(R"({"hidden_act": "swish"})", true), std::pair(R"({"hidden_act": "gelu"})", false)})
    EXPECT_EQ(read(text, {&step, 1}).text.swiglu, silu) << text;
}

TEST(ConfigSteps, CountSharedExpertsUnderEitherKey) {
  constexpr ConfigStep kSteps[] = {size(kMoeFfn, "width"), shared_experts("a", 3, "b")};
  auto shared = [&](const char* text) { return read(text, kSteps).moe.shared_ffn; };
  EXPECT_EQ(shared(R"({"width": 5})"), 15);
  EXPECT_EQ(shared(R"({"width": 5, "a": 2})"), 10);
  EXPECT_EQ(shared(R"({"width": 5, "b": 4})"), 20);
  EXPECT_EQ(shared(R"({"width": 5, "a": 0, "b": 0})"), 0);
}

TEST(ConfigSteps, NeedTheLayersOfExaoneWithoutWindows) {
  constexpr ConfigStep kStep = part("exaone_layers");
  for (const char* text : {"{}", R"({"layer_types": ["full_attention"], "sliding_window": null})",
                           R"({"sliding_window": 4096, "sliding_window_pattern": 2})"})
    EXPECT_EQ(refusal(text, kStep), "nothing") << text;
  for (const char* text : {R"({"sliding_window": null})", R"({"sliding_window_pattern": null})",
                           R"({"sliding_window_pattern": "LLLG"})", R"({"sliding_window_pattern": 0})"})
    EXPECT_NE(refusal(text, kStep).find("'layer_types' is missing"), std::string::npos) << text;
}

TEST(ConfigSteps, ReadObjectsWithTheirDefaults) {
  static constexpr ConfigStep kInner[] = {size(kFfn, "ffn"), size(kHidden, "hidden")};
  constexpr ConfigStep kSteps[] = {inside("part", kInner, R"({"ffn": 9})")};
  const ModelConfig m = read(R"({"part": {"hidden": 2}})", kSteps);
  EXPECT_EQ(m.text.ffn, 9);
  EXPECT_EQ(m.text.hidden, 2);
  constexpr ConfigStep kEither[] = {inside_or_here("part", kInner)};
  EXPECT_EQ(read(R"({"ffn": 1, "hidden": 2})", kEither).text.ffn, 1);
  EXPECT_EQ(read(R"({"ffn": 1, "part": {"ffn": 3, "hidden": 2}})", kEither).text.ffn, 3);
}

TEST(ConfigSteps, TakeTheTieOfTheWholeBeforeThatOfItsText) {
  constexpr ConfigStep kSteps[] = {tied()};
  EXPECT_TRUE(read(R"({"text_config": {"tie_word_embeddings": true}})", kSteps).tied);
  EXPECT_FALSE(
      read(R"({"tie_word_embeddings": false, "text_config": {"tie_word_embeddings": true}})", kSteps).tied);
}

TEST(ConfigSteps, NameTheEntryThatTheyRefuse) {
  EXPECT_NE(refusal("{}", size(kFfn, "ffn")).find("'ffn' is missing"), std::string::npos);
  EXPECT_NE(refusal(R"({"a": 1, "b": 2})", size(kFfn, "a", "b")).find("'b' contradicts 'a'"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"a": 1, "b": 2})", shared_experts("a", 0, "b")).find("'b' contradicts 'a'"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"bias": true})", refused("bias")).find("'bias' is true"), std::string::npos);
  EXPECT_NE(refusal(R"({"bias": false})", needed("bias", "is false; it is needed")).find("it is needed"),
            std::string::npos);
  EXPECT_NE(refusal("{}", inside("part", {})).find("'part' is missing"), std::string::npos);
  EXPECT_NE(refusal("{}", part("no such function")).find("no such function"), std::string::npos);
}

void check_names(std::span<const ConfigStep> steps, std::string_view family) {
  for (const ConfigStep& step : steps) {
    if (step.kind == ConfigStep::Kind::kPart) {
      EXPECT_NO_THROW(named_part(step.words)) << family;
    }
    check_names(step.steps, family);
  }
}

TEST(ConfigSteps, OfEveryFamilyCanBeCarriedOut) {
  for (const Family* family : all_families()) {
    EXPECT_FALSE(family->config.empty()) << family->name;
    check_names(family->config, family->name);
  }
}

}  // namespace steps_test
}  // namespace mckpt::impl
