// config.json as a text of which one entry is changed, and every other byte stays.
#include <gtest/gtest.h>

#include "hf/adapter/amended_config.h"
#include "hf/config/dtype.h"

namespace mckpt::impl {
namespace config_text_test {

TEST(ConfigText, HasItsTypeChangedInEveryPart) {
  EXPECT_EQ(with_config_dtype(R"({"dtype": "bfloat16", "name": "bfloat16"})", "float32"),
            R"({"dtype": "float32", "name": "bfloat16"})");
  EXPECT_EQ(
      with_config_dtype(R"({"torch_dtype": "float16", "text_config": {"dtype": "bfloat16"}})", "float32"),
      R"({"torch_dtype": "float32", "text_config": {"dtype": "float32"}})");
  EXPECT_EQ(
      with_config_dtype(R"({"thinker_config": {"dtype": "float16", "text_config": {"dtype": "float16"}}})",
                        "float32"),
      R"({"thinker_config": {"dtype": "float32", "text_config": {"dtype": "float32"}}})");
}

TEST(ConfigText, KeepsTheTypesThatAreNotOfWeights) {
  for (const char* text :
       {R"({"quantization_config": {"dtype": "bfloat16", "a_config": {"dtype": "bfloat16"}}})",
        R"({"a_config": {"quantization_config": {"torch_dtype": "float16"}}})",
        R"({"rope": {"dtype": "float32"}, "list": [{"dtype": "float16"}]})", R"({"dtype": "auto"})", R"({})"})
    EXPECT_EQ(with_config_dtype(text, "float64"), text);
}

TEST(ConfigText, HasAResizedVocabularyWhereTheClassReadsIt) {
  const AmendedConfig vocab{.vocab = 14};
  EXPECT_EQ(amended(R"({"vocab_size": 9, "a": 1})", vocab), R"({"vocab_size": 14, "a": 1})");
  EXPECT_EQ(amended(R"({"vocab_size": 9, "text_config": {"vocab_size": 9}})", vocab),
            R"({"vocab_size": 9, "text_config": {"vocab_size": 14}})");
  // The text model's entry has its default, and is left out.
  EXPECT_EQ(amended(R"({"a": 1, "text_config": {"b": 2}})", vocab),
            R"({"a": 1, "text_config": {"vocab_size": 14,"b": 2}})");
  EXPECT_EQ(amended(R"({"vocab_size": 9, "text_config": {"b": 2}})", vocab),
            R"({"vocab_size": 14, "text_config": {"b": 2}})");
}

TEST(ConfigText, SaysInBothPlacesThatTheHeadIsItsOwn) {
  const AmendedConfig untied{.untied = true};
  EXPECT_EQ(amended(R"({"tie_word_embeddings": true})", untied), R"({"tie_word_embeddings": false})");
  EXPECT_EQ(amended(R"({"a": 1, "text_config": {"tie_word_embeddings": true}})", untied),
            R"({"tie_word_embeddings": false,"a": 1, "text_config": {"tie_word_embeddings": false}})");
}

}  // namespace config_text_test
}  // namespace mckpt::impl
