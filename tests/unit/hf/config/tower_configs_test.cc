// Models behind a vision or audio tower: the spellings of configs and of tensors that files of different
// origin have, and what Megatron's model of the family does not have and is refused.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "mappings/family.h"
#include "tests/support/golden_config.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace tower_configs_test {

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  std::size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return at == text.npos ? text : text.replace(at, from.size(), to);
}

TEST(TowerConfigs, FilesOfTheHubLeaveOutWhatIsTheDefaultOfTheClass) {
  HfConfig gemma = read_hf_config(R"({"model_type": "gemma3", "text_config": {"hidden_size": 2560,
      "intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 34},
      "vision_config": {"hidden_size": 1152, "image_size": 896, "intermediate_size": 4304, "num_attention_heads": 16,
      "num_hidden_layers": 27, "patch_size": 14}})");
  const ModelConfig& m = gemma.model;
  EXPECT_EQ((std::vector<i64>{m.vocab, m.text.heads, m.text.kv_groups, m.text.head_dim, m.vision.positions,
                              m.vision.in_channels, m.vision_tower.head_dim}),
            (std::vector<i64>{262208, 8, 4, 256, 4096, 3, 72}));
  EXPECT_TRUE(m.tied);
  HfConfig audio = read_hf_config(R"({"model_type": "qwen2_audio", "audio_config": {"num_mel_bins": 128},
      "text_config": {"intermediate_size": 11008, "model_type": "qwen2", "vocab_size": 156032}})");
  EXPECT_EQ(audio.model.text.hidden, 4096);
  EXPECT_EQ(audio.model.text.ffn, 11008);
  EXPECT_EQ(std::ssize(audio.model.audio_tower.layers), 32);
  EXPECT_FALSE(audio.model.tied);
}

TEST(TowerConfigs, TheLanguageModelOfQwen25VlMayBeAtTheTop) {
  HfConfig flat =
      read_hf_config(R"({"model_type": "qwen2_5_vl", "hidden_size": 2048, "intermediate_size": 11008,
      "num_attention_heads": 16, "num_key_value_heads": 2, "num_hidden_layers": 36, "vocab_size": 151936,
      "tie_word_embeddings": true, "vision_config": {"depth": 32, "hidden_size": 1280, "in_chans": 3,
      "intermediate_size": 3420, "num_heads": 16, "out_hidden_size": 2048, "patch_size": 14, "spatial_merge_size": 2,
      "temporal_patch_size": 2}})");
  EXPECT_EQ(flat.model.text.head_dim, 128);
  EXPECT_EQ(flat.model.vision_tower.head_dim, 80);
  EXPECT_TRUE(flat.model.tied && flat.model.text.qkv_bias);
}

TEST(TowerConfigs, WhatMegatronsModelLacksIsRefusedByItsKey) {
  struct Case {
    const char *model, *from, *to, *says;
  };
  for (const Case& c : {
           Case{"qwen3_omni_moe", "\"enable_audio_output\": false", "\"enable_audio_output\": true",
                "'enable_audio_output' is not false"},
           Case{"qwen2_5_omni_a", "\"enable_audio_output\": false", "\"enable_audio_output\": true",
                "'enable_audio_output' is not false"},
           Case{"ernie4_5_vl_moe_a", "\"moe_num_experts\": 8", "\"moe_num_experts\": [8, 4]",
                "is not the same number for both pools"},
           Case{"nemotron_omni_a", "\"subsampling_factor\": 8", "\"subsampling_factor\": 4",
                "'sound_config.subsampling_factor' is not the one of three convolutions"},
           Case{"llama_nemotron_a", "\"replace_with_linear\": false", "\"replace_with_linear\": true",
                "'block_configs[0].attention.replace_with_linear' is true"},
           Case{"gemma3_vl", "\"vision_use_head\": false", "\"vision_use_head\": true",
                "vision_use_head' is not false"},
           Case{"ministral3", "\"multimodal_projector_bias\": false", "\"multimodal_projector_bias\": true",
                "'multimodal_projector_bias' is true"},
           Case{"ministral3", "\"vision_feature_layer\": -1", "\"vision_feature_layer\": [-1, 1]",
                "'vision_feature_layer' is not one layer"},
           Case{"ministral3", "\"pixtral\"", "\"clip\"", "is another vision tower"},
           Case{"minimax_m3_vl", "\"minimax_m3_sparse\"", "\"gated\"",
                "names a kind of layer that is not known"},
           Case{"falcon_h1", "\"mamba_d_ssm\": 48", "\"mamba_d_ssm\": 56",
                "'mamba_d_head' is not what each head has"},
           Case{"falcon_h1", "\"mamba_conv_bias\": true", "\"mamba_conv_bias\": false",
                "'mamba_conv_bias' is false"},
       }) {
    std::string text = replaced(golden_config_text(c.model), c.from, c.to);
    std::string said = thrown_by([&] { read_hf_config(text); });
    EXPECT_NE(said.find(c.says), said.npos) << c.model << ": " << said;
  }
}

// The names of a golden model's tensors with another prefix: each finds its parameter.
void expect_spelling(const std::string& model, std::string_view prefix, std::string_view other) {
  HfConfig config = golden_config(model);
  ModelMap promised = ModelMap::promised(config.model, *config.family);
  SourceTable table;
  std::vector<Shape> shapes = promised.source_shapes();
  std::vector<std::string> names;
  i64 changed = 0;
  for (i32 t = 0; t < promised.sources().size(); t++) {
    std::string name(promised.sources()[t].name);
    if (name.starts_with(prefix)) name = cat(other, name.substr(prefix.size())), changed++;
    names.push_back(name);
  }
  ASSERT_GT(changed, 3) << model;
  for (std::size_t t = 0; t < names.size(); t++) table.add({names[t], shapes[t].dims(), DType::kBF16, true});
  ModelMap map(config.model, *config.family, std::move(table));
  EXPECT_EQ(map.parameter_count(), promised.parameter_count()) << model;
  EXPECT_TRUE(map.unread().empty()) << model;
}

TEST(TowerConfigs, OlderAndNewerFilesSpellPrefixesInAnotherWay) {
  expect_spelling("gemma3_vl", "vision_tower.", "vision_tower.vision_model.");
  expect_spelling("qwen2_audio", "language_model.", "language_model.model.");
}

// Neither the layers of a copied tower nor those with attention beside Mamba are units of Megatron-FSDP.
TEST(TowerConfigs, OnlyMegatronsOwnLayersAreUnits) {
  auto units = [](const std::string& model) {
    ModelMap map = golden_map(model);
    std::set<i64> found;
    for (const ModelParameter& p : golden_parameters(map, Grid{}, 0))
      if (p.unit_class != UnitClass::kNone) found.insert(p.unit);
    return std::ssize(found);
  };
  EXPECT_EQ(units("qwen2_5_vl"), 3);
  EXPECT_EQ(units("minimax_m3_vl"), 3);
  EXPECT_EQ(units("falcon_h1"), 0);
  EXPECT_EQ(units("qwen3_vl"), std::ssize(golden_config("qwen3_vl").model.text.layers) +
                                   std::ssize(golden_config("qwen3_vl").model.vision_tower.layers));
}

}  // namespace tower_configs_test
}  // namespace mckpt::impl
