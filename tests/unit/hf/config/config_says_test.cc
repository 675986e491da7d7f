#include "hf/config/config_says.h"

#include <gtest/gtest.h>

#include "io/json/json.h"

namespace mckpt::impl {
namespace {

ConfigSays said(const char* text) { return config_says(parse_json(text)); }

TEST(ConfigSays, NamesTheModel) {
  const ConfigSays says = said(R"({"model_type": "llama", "architectures": ["LlamaForCausalLM", "Other"]})");
  EXPECT_EQ(says.model_type, "llama");
  EXPECT_EQ(says.architecture, "LlamaForCausalLM");
  EXPECT_FALSE(says.tied);
}

TEST(ConfigSays, TakesTheTieOfTheWholeBeforeThatOfItsText) {
  EXPECT_EQ(said(R"({"text_config": {"tie_word_embeddings": true}})").tied, true);
  EXPECT_EQ(said(R"({"tie_word_embeddings": false, "text_config": {"tie_word_embeddings": true}})").tied,
            false);
}

TEST(ConfigSays, EntriesOfOtherTypesSayNothing) {
  for (const char* text :
       {"[]", "null", R"({"model_type": 3, "architectures": "x", "tie_word_embeddings": 1})",
        R"({"architectures": [], "text_config": "x"})"}) {
    const ConfigSays says = said(text);
    EXPECT_EQ(says.model_type + says.architecture, "") << text;
    EXPECT_FALSE(says.tied) << text;
  }
}

}  // namespace
}  // namespace mckpt::impl
