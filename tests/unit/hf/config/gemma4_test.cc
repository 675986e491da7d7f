// Gemma 4: the sizes of its layers by the config, in the spelling of the hub and of transformers 5; the
// refusals by entry; and the grids that its model does not have.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/support/golden_config.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace gemma4_test {

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  std::size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return at == text.npos ? text : text.replace(at, from.size(), to);
}

// "10x4 10x4 16x2=" for each layer: size of a head, groups, "=" one tensor of keys and values, "^" the keys
// and values of an earlier layer, and the width of the MLP.
std::string layers_of(const std::string& config) {
  ModelConfig m = read_hf_config(config).model;
  std::string out;
  for (const LayerSpec& layer : m.text.layers) {
    const TowerConfig& t =
        layer.sizes == 0 ? m.text : m.layer_sizes[static_cast<std::size_t>(layer.sizes) - 1];
    const char* of[] = {"", "=", "^"};
    out += cat(out.empty() ? "" : " ", t.head_dim, "x", t.kv_groups, of[static_cast<int>(t.key_values)], "/",
               t.ffn);
  }
  return out;
}

TEST(Gemma4, LayersHaveTheSizesOfTheirKind) {
  EXPECT_EQ(layers_of(golden_config_text("gemma4_moe")), "10x4/88 10x4/88 16x2=/88");
  EXPECT_EQ(layers_of(golden_config_text("gemma4_ple")),
            "10x4/40 10x4/40 16x4/40 10x4^/80 10x4^/80 16x4^/80");
  std::string moe = golden_config_text("gemma4_moe");
  EXPECT_EQ(layers_of(replaced(moe, "\"num_global_key_value_heads\": 2,", "")), "10x4/88 10x4/88 16x4=/88");
  // Every sixth layer is full where the config does not say which are, and the last one always.
  std::string listed =
      "\"layer_types\": [\n    \"sliding_attention\",\n    \"sliding_attention\",\n    "
      "\"full_attention\"\n  ],";
  EXPECT_EQ(
      layers_of(replaced(replaced(moe, listed, ""), "\"num_hidden_layers\": 3", "\"num_hidden_layers\": 8")),
      "10x4/88 10x4/88 10x4/88 10x4/88 10x4/88 16x2=/88 10x4/88 16x2=/88");
  EXPECT_EQ(layers_of(replaced(moe, "\"full_attention\"\n  ]", "\"sliding_attention\"\n  ]")),
            "10x4/88 10x4/88 16x2=/88");
}

TEST(Gemma4, TransformersWritesTheSizesOfEachLayerThatDiffers) {
  std::string moe = golden_config_text("gemma4_moe");
  moe = replaced(moe, "\"global_head_dim\": 16,",
                 "\"per_layer_config\": {\"2\": {\"head_dim\": 14, "
                 "\"num_key_value_heads\": 2}},");
  moe = replaced(moe, "\"num_global_key_value_heads\": 2,", "");
  EXPECT_EQ(layers_of(moe), "10x4/88 10x4/88 14x2=/88");
  EXPECT_EQ(layers_of(replaced(moe, "\"num_key_value_heads\": 2", "\"head_dim_\": 2")),
            "10x4/88 10x4/88 14x4=/88");
  EXPECT_EQ(layers_of(replaced(moe, "{\"2\"", "{\"1\"")), "10x4/88 10x4/88 10x4=/88");
}

TEST(Gemma4, WhatMegatronsModelLacksIsRefusedByItsKey) {
  struct Case {
    const char *model, *from, *to, *says;
  };
  for (const Case& c : {
           Case{"gemma4_moe", "\"attention_bias\": false", "\"attention_bias\": true",
                "MC2003 'attention_bias'"},
           Case{"gemma4_moe", "\"num_kv_shared_layers\": 0", "\"num_kv_shared_layers\": 1",
                "MC2003 'num_kv_shared_layers' is not 0 in a model with experts"},
           Case{"gemma4_moe", "\"hidden_size_per_layer_input\": 0", "\"hidden_size_per_layer_input\": 4",
                "MC2003 'hidden_size_per_layer_input' is not 0"},
           Case{"gemma4_moe", "\"full_attention\"\n  ]", "\"half_attention\"\n  ]", "MC2001 'layer_types'"},
           Case{"gemma4_moe", "\"num_hidden_layers\": 3", "\"num_hidden_layers\": 4",
                "MC2001 'layer_types' does not have one entry for each layer"},
           Case{"gemma4_moe", "\"num_global_key_value_heads\": 2", "\"num_global_key_value_heads\": 3",
                "MC2001 'num_global_key_value_heads'"},
           Case{"gemma4_ple", "\"num_global_key_value_heads\": 4", "\"num_global_key_value_heads\": 2",
                "MC2003 'num_global_key_value_heads'"},
           Case{"gemma4_ple", "\"vocab_size\": 128", "\"vocab_size\": 264",
                "MC2003 'vocab_size' is not a multiple"},
           Case{"gemma4_ple", "\"vocab_size_per_layer_input\": 128", "\"vocab_size_per_layer_input\": 64",
                "MC2003 'vocab_size_per_layer_input'"},
           Case{"gemma4_ple", "\"num_kv_shared_layers\": 3", "\"num_kv_shared_layers\": 4",
                "MC2001 'num_kv_shared_layers'"},
           Case{"gemma4_vl", "\"audio_config\": null", "\"audio_config\": {\"num_attention_heads\": 3}",
                "MC2001 'audio_config.num_attention_heads' does not divide"},
           Case{"gemma4_vl", "\"audio_config\": null",
                "\"audio_config\": {\"subsampling_conv_channels\": [8]}",
                "MC2001 'audio_config.subsampling_conv_channels'"},
       }) {
    std::string error =
        thrown_by([&] { read_hf_config(replaced(golden_config_text(c.model), c.from, c.to)); });
    EXPECT_TRUE(error.starts_with(c.says)) << c.to << ": " << error;
  }
}

// Released models shift and scale what the tower gives: two buffers more, of the type of the model.
TEST(Gemma4, BuffersBehindTheTowerAreThoseOfTheModule) {
  HfConfig config = read_hf_config(
      replaced(golden_config_text("gemma4_vl"), "\"standardize\": false", "\"standardize\": true"));
  ModelMap map = ModelMap::promised(config.model, *config.family);
  std::string found;
  for (const ModelParameter& p : golden_parameters(map, {.tp = 2}, 1))
    if (p.name.starts_with("vision_tower.std_"))
      found += cat(p.name, " ", dtype_name(p.dtype), " ", to_string(p.shape()), p.buffer() ? " buffer " : " ",
                   map.sources()[p.sources[0]].name, "; ");
  EXPECT_EQ(found,
            "vision_tower.std_bias bfloat16 [24] buffer model.vision_tower.std_bias; "
            "vision_tower.std_scale bfloat16 [24] buffer model.vision_tower.std_scale; ");
}

// An audio tower without entries has the sizes of the class in transformers, and its linear layers are clipped.
TEST(Gemma4, AnAudioTowerHasTheUsualSizes) {
  const ModelConfig m = read_hf_config(replaced(golden_config_text("gemma4_vl"), "\"audio_config\": null",
                                                "\"audio_config\": {}"))
                            .model;
  EXPECT_EQ(m.audio_tower.hidden, 1024);
  EXPECT_EQ(m.audio_tower.ffn, 4096);
  EXPECT_EQ(m.audio_tower.head_dim, 128);
  EXPECT_EQ(m.audio_tower.layers.size(), 12u);
  EXPECT_EQ(m.audio.channels, 128);
  EXPECT_EQ(m.audio.last_channels, 32);
  EXPECT_EQ(m.audio.bins, 32);
  EXPECT_EQ(m.audio.kernel, 5);
  EXPECT_EQ(m.audio.out_hidden, 1536);
  EXPECT_TRUE(m.audio_tower.clipped);
  EXPECT_FALSE(m.vision_tower.clipped);
}

TEST(Gemma4, GridsThatItsModelDoesNotHaveAreRefused) {
  auto refused = [](const char* model, const Grid& grid) {
    ModelMap map = golden_map(model);
    return thrown_by([&] { golden_parameters(map, grid, 0); });
  };
  EXPECT_EQ(refused("gemma4_ple", {.cp = 2}),
            "MC2007 Megatron's model of this family has no context parallelism: expected `cp` 1, found 2");
  EXPECT_EQ(refused("gemma4_ple", {.pp = 2}),
            "MC2007 the second embedding, which every layer reads, cannot be read on another pipeline stage: "
            "expected "
            "`pp` 1, found 2");
  EXPECT_EQ(refused("gemma4_ple", {.tp = 4}), "nothing");
  EXPECT_EQ(refused("gemma4_moe", {.cp = 2}), "nothing");
  EXPECT_EQ(refused("gemma4_moe", {.pp = 3}), "nothing");
}

}  // namespace gemma4_test
}  // namespace mckpt::impl
