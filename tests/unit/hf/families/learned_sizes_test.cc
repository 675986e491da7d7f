// Sizes of a vision tower that a config does not mention: the tensors give them, but for the number of heads,
// which counts as the code's only where the tower is as wide as the code's.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "mappings/config.h"
#include "tests/support/golden_config.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace learned_sizes_test {

constexpr std::string_view kSizes[] = {"num_hidden_layers", "hidden_size", "intermediate_size",
                                       "max_resolution", "num_attention_heads"};

// The config of the golden model without the first so many of its entries about the tower's sizes.
std::string without(std::size_t entries) {
  std::string text = golden_config_text("nemotron_omni_a");
  const std::size_t tower = text.find("\"vision_config\"");
  for (std::string_view key : std::span(kSizes).first(entries)) {
    const std::size_t at = text.find(cat("\"", key, "\""), tower);
    EXPECT_NE(at, text.npos) << key;
    text.replace(at, key.size() + 2, cat("\"no_", key, "\""));
  }
  return text;
}

// The map of that config with the tensors that the whole config promises.
ModelMap map_of(const std::string& text, const ModelMap& promised, const std::vector<Shape>& shapes) {
  HfConfig config = read_hf_config(text);
  SourceTable table;
  for (i32 t = 0; t < promised.sources().size(); t++) {
    const std::string_view name = promised.sources()[t].name;
    table.add({name, shapes[static_cast<std::size_t>(t)].dims(),
               name.ends_with("num_batches_tracked") ? DType::kI64 : DType::kBF16, true});
  }
  return ModelMap(config.model, *config.family, std::move(table));
}

TEST(LearnedSizes, TensorsGiveWhatTheConfigLeavesOut) {
  const ModelMap promised = golden_map("nemotron_omni_a");
  const std::vector<Shape> shapes = promised.source_shapes();
  const ModelMap map = map_of(without(4), promised, shapes);
  const TowerConfig& tower = map.model().vision_tower;
  EXPECT_EQ((std::vector<i64>{tower.hidden, tower.heads, tower.head_dim, tower.ffn, std::ssize(tower.layers),
                              map.model().vision.positions, map.model().vision.class_tokens}),
            (std::vector<i64>{32, 4, 8, 56, 2, 1024, 10}));
  EXPECT_EQ(map.parameter_count(), promised.parameter_count());
}

TEST(LearnedSizes, NoTensorShowsHowManyHeadsThereAre) {
  const ModelMap promised = golden_map("nemotron_omni_a");
  const std::vector<Shape> shapes = promised.source_shapes();
  EXPECT_EQ(thrown_by([&] { map_of(without(5), promised, shapes); }),
            "MC2001 the config does not say how many heads the vision tower has: expected a tower of width "
            "1280, whose heads are known, or 'vision_config.num_attention_heads', found a tower of width 32");
}

// As released: no entry about the tower's sizes, and no tensor at hand.
TEST(LearnedSizes, WithoutTensorsTheSizesAreTheCodes) {
  const TowerConfig tower = read_hf_config(without(5)).model.vision_tower;
  EXPECT_EQ(
      (std::vector<i64>{tower.hidden, tower.heads, tower.head_dim, tower.ffn, std::ssize(tower.layers)}),
      (std::vector<i64>{1280, 16, 80, 5120, 32}));
}

}  // namespace learned_sizes_test
}  // namespace mckpt::impl
