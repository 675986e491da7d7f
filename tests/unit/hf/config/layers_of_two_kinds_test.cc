// Step-3.5 and MiMo-V2-Flash: the heads of each layer and which layers have experts, in the spelling of the hub and of
// transformers; layers for prediction of either kind; the refusals by entry; and the grids that their models do not have.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "mappings/config.h"
#include "mappings/fsdp/layout.h"
#include "mappings/fsdp/setup.h"
#include "tests/support/golden_config.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace layers_of_two_kinds_test {

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  std::size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return at == text.npos ? text : text.replace(at, from.size(), to);
}

// Takes the list of the key out: "layer_types": [...],
std::string without_list(std::string text, const std::string& key) {
  std::size_t at = text.find(cat('"', key, '"'));
  EXPECT_NE(at, text.npos) << key;
  return at == text.npos ? text : text.erase(at, text.find("],", at) + 2 - at);
}

std::string sizes_text(const TowerConfig& t) {
  return cat(t.heads, "/", t.kv_groups, "x", t.head_dim, t.value_dim > 0 ? cat(":", t.value_dim) : "",
             t.sinks ? "!" : "");
}

// "8/4x8 16/4x8* ...": heads, groups and the size of a head; of values, "!" sinks, "*" experts.
std::string layers_of(const ModelConfig& m) {
  std::string out;
  for (const LayerSpec& layer : m.text.layers)
    out += cat(out.empty() ? "" : " ", sizes_text(layer.sizes == 0 ? m.text : m.layer_sizes.at(0)),
               layer.ffn == Ffn::kMoe ? "*" : "");
  return out;
}
std::string layers_of(const std::string& text) { return layers_of(read_hf_config(text).model); }

TEST(Step, LayersHaveTheHeadsOfTheirKind) {
  const std::string step = golden_config_text("step3p5_a");
  EXPECT_EQ(layers_of(step), "8/4x8 16/4x8* 16/4x8* 8/4x8*");
  EXPECT_EQ(layers_of(golden_config_text("step3p7_a")), "8/4x8 16/4x8* 16/4x8*");
  EXPECT_EQ(layers_of(replaced(step, "\"1,2,3\"", "[0, 2, 9]")), "8/4x8* 16/4x8 16/4x8* 8/4x8");
  EXPECT_EQ(layers_of(replaced(step, "\"1,2,3\"", "\" 1 ,  2, 3 \"")), layers_of(step));
  EXPECT_EQ(layers_of(replaced(step, "\"moe_layers_enum\": \"1,2,3\",", "")), "8/4x8 16/4x8 16/4x8 8/4x8*");
  EXPECT_EQ(layers_of(without_list(step, "layer_types")), "8/4x8 8/4x8* 8/4x8* 8/4x8*");
  EXPECT_EQ(
      layers_of(replaced(step, "\"attention_type\": \"sliding_attention\"", "\"attention_type\": \"other\"")),
      "8/4x8 96/8x128* 96/8x128* 8/4x8*");
}

TEST(Step, TransformersWritesWordsForEachLayer) {
  std::string step = golden_config_text("step3p5_a");
  step = replaced(step, "\"moe_layers_enum\": \"1,2,3\"",
                  "\"mlp_layer_types\": [\"dense\", \"dense\", \"sparse\", \"sparse\"]");
  step = replaced(step, "\"num_attention_groups\"", "\"num_key_value_heads\"");
  step = replaced(step, "\"moe_num_experts\"", "\"n_routed_experts\"");
  step = replaced(step, "\"attention_other_setting\"", "\"num_sliding_attention_heads\": 12, \"old\"");
  EXPECT_EQ(layers_of(step), "8/4x8 12/4x8 12/4x8* 8/4x8*");
}

TEST(Step, LayersForPredictionAreOfEitherKindAndDense) {
  std::string step = golden_config_text("step3p5_a");
  step = replaced(step, "\"num_nextn_predict_layers\": 0", "\"num_nextn_predict_layers\": 2");
  const ModelConfig plain = read_hf_config(step).model;
  EXPECT_EQ(plain.mtp.depths, 2);
  EXPECT_TRUE(plain.mtp.sizes_of_depths.empty() && !plain.mtp.one_stage);
  std::string mixed = replaced(step, "\"layer_types\": [\n    \"full_attention\",",
                               "\"mtp_layer_types\": [\"full_attention\", \"sliding_attention\"],\n"
                               "  \"layer_types\": [\n    \"full_attention\",");
  HfConfig config = read_hf_config(mixed);
  const MtpConfig& mtp = config.model.mtp;
  ASSERT_GE(mtp.sizes_of_depths.size(), 2u);
  EXPECT_EQ(mtp.sizes_of_depths[0], 0);
  EXPECT_EQ(mtp.sizes_of_depths[1], 1);
  ModelMap map = ModelMap::promised(config.model, *config.family);
  std::map<std::string, Shape> shapes;
  for (const ModelParameter& p : golden_parameters(map, {}, 0)) shapes[p.name] = p.shape();
  EXPECT_EQ(shapes.at("mtp.layers.0.mtp_model_layer.self_attention.linear_qkv.weight"), (Shape{192, 48}));
  EXPECT_EQ(shapes.at("mtp.layers.1.mtp_model_layer.self_attention.linear_qkv.weight"), (Shape{320, 48}));
  EXPECT_FALSE(shapes.contains("mtp.layers.1.mtp_model_layer.mlp.router.weight"));
  // A real run of more stages builds the layer with the heads of full attention, which the file does not fit.
  Grid two;
  two.pp = 2;
  EXPECT_EQ(
      thrown_by([&] { golden_parameters(map, two, 0); }),
      "MC2007 Megatron's layers of this family's MTP have their sizes only without pipeline stages: expected "
      "`pp` 1, found 2");
  ModelMap full = ModelMap::promised(plain, *config.family);
  EXPECT_EQ(thrown_by([&] { golden_parameters(full, two, 0); }), "nothing");
}

TEST(MimoV2, LayersHaveTheHeadsOfTheirKind) {
  const std::string mimo = golden_config_text("mimo_v2_flash_a");
  EXPECT_EQ(layers_of(mimo), "8/4x12:8 8/8x12:8!* 8/8x12:8!* 8/4x12:8*");
  const std::string without = without_list(without_list(mimo, "hybrid_layer_pattern"), "moe_layer_freq");
  // transformers saves the flags of a release beside its own words, and has built the model by the words.
  for (const std::string& flags : {without, mimo}) {
    const std::string words = replaced(
        flags, "\"swa_num_key_value_heads\": 8,",
        "\"layer_types\": [\"sliding_attention\", \"full_attention\", \"full_attention\", "
        "\"sliding_attention\"], \"mlp_layer_types\": [\"dense\", \"dense\", \"sparse\", \"sparse\"],");
    EXPECT_EQ(layers_of(words), "8/8x12:8! 8/4x12:8 8/4x12:8* 8/8x12:8!*");
  }
}

TEST(LayersOfTwoKinds, WhatTheModelsLackIsRefusedByItsKey) {
  struct Case {
    const char *model, *from, *to, *says;
  };
  for (const Case& c : {
           Case{"step3p5_a", "\"use_head_wise_attn_gate\": true", "\"use_head_wise_attn_gate\": false",
                "MC2003 'use_head_wise_attn_gate' is false"},
           Case{"step3p5_a", "\"1,2,3\"", "\"1;2\"", "MC2001 'moe_layers_enum' is not a list of layers"},
           Case{"step3p5_a", "\"1,2,3\"", "\"1 2,3\"", "MC2001 'moe_layers_enum' is not a list of layers"},
           Case{"step3p5_a", "    \"sliding_attention\",\n", "    \"chunked_attention\",\n",
                "MC2001 'layer_types' names a kind of layer that is not known"},
           Case{"step3p5_a", "    \"sliding_attention\",\n", "",
                "MC2001 'layer_types' does not have one entry for each layer: expected 4, found 3"},
           Case{"step3p7_a", "\"projector_bias\": false", "\"projector_bias\": true",
                "MC2003 'projector_bias'"},
           Case{"step3p7_a", "\"heads\": 2", "\"heads\": 2, \"use_cls_token\": true",
                "MC2003 'vision_config.use_cls_token' is true"},
           Case{"mimo_v2_flash_a", "\"swa_num_attention_heads\": 8", "\"swa_num_attention_heads\": 16",
                "MC2003 'swa_num_attention_heads' is another number"},
           Case{"mimo_v2_flash_a", "\"swa_v_head_dim\": 8", "\"swa_v_head_dim\": 4",
                "MC2003 'swa_v_head_dim'"},
           Case{"mimo_v2_flash_a", "\"add_full_attention_sink_bias\": false",
                "\"add_full_attention_sink_bias\": true", "MC2003 'add_full_attention_sink_bias'"},
           Case{"mimo_v2_flash_a", "\"hybrid_layer_pattern\": [\n    0,",
                "\"hybrid_layer_pattern\": [\n    2,",
                "MC2001 'hybrid_layer_pattern' has another entry: expected 0 or 1, found 2"},
           Case{"mimo_v2_flash_a", "\"moe_layer_freq\": [\n    0,", "\"moe_layer_freq\": [",
                "MC2001 'moe_layer_freq' does not have one entry for each layer: expected 4, found 3"},
           Case{"kimi_k25_a", "\"merge_kernel_size\": [", "\"merge_kernel_size\": [2, ",
                "MC2001 'vision_config.merge_kernel_size' is not the size of a merged block"},
           Case{"kimi_k25_a", "\"text_hidden_size\": 48", "\"text_hidden_size\": 40",
                "MC2001 'vision_config.text_hidden_size' is not the hidden size"},
       }) {
    std::string said =
        thrown_by([&] { read_hf_config(replaced(golden_config_text(c.model), c.from, c.to)); });
    EXPECT_TRUE(said.starts_with(c.says)) << said;
  }
}

TEST(MimoV2, GridsThatMegatronDoesNotBuildAreRefused) {
  ModelMap map = golden_map("mimo_v2_flash_a");
  auto said = [&](const Grid& grid) { return thrown_by([&] { golden_parameters(map, grid, 0); }); };
  EXPECT_EQ(said({.tp = 4}), "nothing");
  EXPECT_EQ(
      said({.tp = 8}),
      "MC2007 Megatron's model of this family has no more tensor-parallel ranks than groups of keys and "
      "values: expected `tp` 4 at most, found 8");
  EXPECT_EQ(said({.cp = 2}),
            "MC2007 Megatron's model of this family has no context parallelism: expected `cp` 1, found 2");
}

TEST(MimoV2, SinksThatMegatronFsdpWouldLoseAreRefused) {
  ModelMap map = golden_map("mimo_v2_flash_a");
  auto said = [&](const Grid& grid) {
    return thrown_by([&] {
      std::vector<ModelParameter> parameters = golden_parameters(map, grid, 0);
      FsdpLayout(parameters, map.model(), grid, {});
    });
  };
  EXPECT_EQ(
      said({.tp = 2, .dp = 2}),
      "MC0203 tensor 'decoder.layers.1.self_attention.core_attention.softmax_offset': Megatron-FSDP cannot hold "
      "attention sinks that are split over tensor-parallel ranks: expected `tp` 1, found 2");
  EXPECT_EQ(said({.ep = 2, .dp = 2}), "nothing");
}

}  // namespace layers_of_two_kinds_test
}  // namespace mckpt::impl
