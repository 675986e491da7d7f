// Layers with tables of n-grams: which have one, how many rows it has, and what is refused.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/config/fields.h"
#include "hf/config/steps.h"
#include "io/json/json.h"
#include "mappings/config_words.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace ngram_layers_test {

using namespace config_steps;

constexpr ConfigStep kStep = part("qwen4_layers");

// Four layers, of which the second and the last have attention; these entries in place of those.
ModelConfig read(const std::string& entries) {
  constexpr std::string_view kOthers = R"({"num_hidden_layers": 4, "layer_types": ["linear_attention",
    "full_attention", "linear_attention", "indexed_attention"], "make_ngram_vocab_size_divisible_by": 4,
    "ngram_vocab_size_base": 50, "heads_per_ngram": 2, "split_ngram_parts": 3, "ple_embed_dim": 20})";
  const JsonValue json = parse_json(cat("{", entries, "}"));
  ModelConfig m;
  read_steps(ConfigFields(json, "").with_defaults(kOthers), {&kStep, 1}, m);
  return m;
}

std::string refusal(const std::string& more) {
  return thrown_by([&] { read(more); });
}

TEST(NGramLayers, HaveRowsByThePrimesOfTheirHeads) {
  const ModelConfig m = read(R"("ple_layer_ids": [3, 1, 3])");
  EXPECT_EQ(m.ngrams.heads, 4);
  EXPECT_EQ(m.ngrams.width, 5);
  EXPECT_EQ(m.ngrams.kernel, 4);
  ASSERT_EQ(m.layer_sizes.size(), 2u);
  EXPECT_EQ(m.layer_sizes[0].ngram_rows, 53 + 59 + 61 + 67);
  EXPECT_EQ(m.layer_sizes[1].ngram_rows, 71 + 73 + 79 + 83 + 2);  // filled up to a multiple of 4
  std::vector<i32> sizes;
  for (const LayerSpec& layer : m.text.layers) sizes.push_back(layer.sizes);
  EXPECT_EQ(sizes, (std::vector<i32>{1, 0, 2, 0}));
  EXPECT_EQ(m.text.layers[0].mixer, Mixer::kGdn);
  EXPECT_EQ(m.text.layers[1].mixer, Mixer::kSparseAttention);
  EXPECT_EQ(m.text.layers[3].mixer, Mixer::kSparseAttention);
}

TEST(NGramLayers, MayBeNone) {
  for (const char* none : {"", R"("ple_layer_ids": [])", R"("ple_layer_ids": null)"}) {
    EXPECT_TRUE(read(none).layer_sizes.empty());
    EXPECT_EQ(read(none).ngrams.parts, 0);
  }
}

TEST(NGramLayers, BeginWithTheFirstPrimeThatIsNotSmallerThanTheBase) {
  const auto rows = [](i64 base) {
    return read(cat(R"("ple_layer_ids": [1], "ngram_size": 2, "heads_per_ngram": 1,
      "make_ngram_vocab_size_divisible_by": 1, "split_ngram_parts": 1, "ngram_vocab_size_base": )",
                    base))
        .layer_sizes[0]
        .ngram_rows;
  };
  EXPECT_EQ(rows(1), 2);
  EXPECT_EQ(rows(3), 3);
  EXPECT_EQ(rows(4), 5);
  EXPECT_EQ(rows(53), 53);
  EXPECT_EQ(rows(20'000'000), 20'000'003);
}

TEST(NGramLayers, RefuseWhatDoesNotFit) {
  EXPECT_NE(refusal(R"("ple_layer_ids": [5])").find("names a layer that does not exist: expected 1 to 4"),
            std::string::npos);
  EXPECT_NE(refusal(R"("ple_layer_ids": [2])").find("has no linear attention"), std::string::npos);
  EXPECT_NE(refusal(R"("ple_layer_ids": [1], "ple_embed_dim": 21)").find("ple_embed_dim"), std::string::npos);
  EXPECT_NE(refusal(R"("ple_layer_ids": [1], "ngram_size": 1)").find("'ngram_size' is too small"),
            std::string::npos);
  EXPECT_NE(refusal(R"("ple_layer_ids": [1], "split_ngram_parts": 200)").find("without rows"),
            std::string::npos);
  EXPECT_NE(refusal(R"("ple_layer_ids": [1], "heads_per_ngram": 4000, "ple_embed_dim": 8000)")
                .find("at most 4096 heads"),
            std::string::npos);
}

}  // namespace ngram_layers_test
}  // namespace mckpt::impl
