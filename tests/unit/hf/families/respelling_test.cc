#include "mappings/model/respelling.h"

#include <gtest/gtest.h>

#include <set>

#include "core/hybrid/pattern.h"
#include "core/hybrid/spellings.h"
#include "tests/support/golden_config.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace respelling_test {

Spelling spelled(std::vector<std::string> words) { return spelling_of(words); }

std::vector<std::string> names_of_layer(const ModelMap& map, const RunSetup& setup,
                                        const std::string& layer) {
  std::vector<std::string> names;
  for (const ModelParameter& p : map.parameters(Grid{}, Cell{}, setup))
    if (p.global_name.starts_with(layer)) {
      names.push_back(p.global_name.substr(layer.size()));
      EXPECT_EQ(p.name, p.global_name);
    }
  return names;
}

using Names = std::vector<std::string>;

// The order of named_parameters() of Megatron's MambaLayer: its mixer and then its norm. A mixer's own
// parameters precede the parameters of its modules, which are in_proj, conv1d, norm and out_proj.
TEST(Respelling, OfAMambaLayer) {
  ModelMap map = golden_map("nemotron_h");
  auto layer = [&](std::vector<std::string> words) {
    return names_of_layer(map, {.vocab_rows = 0, .params_dtype = {}, .spelling = spelled(words)},
                          "decoder.layers.0.");
  };
  EXPECT_EQ(layer({}), (Names{"mixer.conv1d_weight", "mixer.conv1d_bias", "mixer.dt_bias", "mixer.A_log",
                              "mixer.D", "mixer.in_proj.layer_norm_weight", "mixer.in_proj.weight",
                              "mixer.norm.weight", "mixer.out_proj.weight"}));
  EXPECT_EQ(layer({"submodule-conv"}),
            (Names{"mixer.dt_bias", "mixer.A_log", "mixer.D", "mixer.in_proj.layer_norm_weight",
                   "mixer.in_proj.weight", "mixer.conv1d.weight", "mixer.conv1d.bias", "mixer.norm.weight",
                   "mixer.out_proj.weight"}));
  EXPECT_EQ(layer({"unfused-norms"}),
            (Names{"mixer.conv1d_weight", "mixer.conv1d_bias", "mixer.dt_bias", "mixer.A_log", "mixer.D",
                   "mixer.in_proj.weight", "mixer.norm.weight", "mixer.out_proj.weight", "norm.weight"}));
  EXPECT_EQ(layer({"unfused-norms", "submodule-conv"}),
            (Names{"mixer.dt_bias", "mixer.A_log", "mixer.D", "mixer.in_proj.weight", "mixer.conv1d.weight",
                   "mixer.conv1d.bias", "mixer.norm.weight", "mixer.out_proj.weight", "norm.weight"}));
}

// A TransformerLayer builds input_layernorm, self_attention, pre_mlp_layernorm, mlp.
TEST(Respelling, OfATransformerLayer) {
  auto layer = [&](const char* model, int number) {
    return names_of_layer(golden_map(model),
                          {.vocab_rows = 0, .params_dtype = {}, .spelling = spelled({"unfused-norms"})},
                          cat("decoder.layers.", number, "."));
  };
  EXPECT_EQ(layer("qwen3_dense", 1),
            (Names{"input_layernorm.weight", "self_attention.linear_proj.weight",
                   "self_attention.linear_qkv.weight", "self_attention.q_layernorm.weight",
                   "self_attention.k_layernorm.weight", "pre_mlp_layernorm.weight", "mlp.linear_fc1.weight",
                   "mlp.linear_fc2.weight"}));
  EXPECT_EQ(layer("nemotron_h", 3), (Names{"input_layernorm.weight", "self_attention.linear_proj.weight",
                                           "self_attention.linear_qkv.weight"}));
  EXPECT_EQ(layer("nemotron_h", 1),
            (Names{"pre_mlp_layernorm.weight", "mlp.linear_fc1.weight", "mlp.linear_fc2.weight"}));
  Names latent = layer("deepseek_v3", 0);
  EXPECT_EQ(latent,
            (Names{"input_layernorm.weight", "self_attention.linear_proj.weight",
                   "self_attention.linear_q_down_proj.weight", "self_attention.linear_q_up_proj.weight",
                   "self_attention.linear_kv_down_proj.weight", "self_attention.linear_kv_up_proj.weight",
                   "self_attention.q_layernorm.weight", "self_attention.kv_layernorm.weight",
                   "pre_mlp_layernorm.weight", "mlp.linear_fc1.weight", "mlp.linear_fc2.weight"}));
}

TEST(Respelling, OfAGatedDeltaNet) {
  ModelMap map = golden_map("qwen3_next");
  RunSetup setup{.vocab_rows = 0, .params_dtype = {}, .spelling = spelled({"unfused-norms"})};
  Names names = names_of_layer(map, setup, "decoder.layers.0.self_attention.");
  EXPECT_EQ(std::count(names.begin(), names.end(), "in_proj.layer_norm_weight"), 0);
  names = names_of_layer(map, setup, "decoder.layers.0.");
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(names[0], "input_layernorm.weight");
  EXPECT_EQ(std::count(names.begin(), names.end(), "input_layernorm.weight"), 1);
}

// Weights before biases, also where both move.
TEST(Respelling, KeepsWeightBeforeBias) {
  ModelMap map = golden_map("qwen3_vl");
  RunSetup setup{.vocab_rows = 0, .params_dtype = {}, .spelling = spelled({"unfused-norms"})};
  Names names = names_of_layer(map, setup, "vision_model.decoder.layers.0.");
  EXPECT_EQ(names, (Names{"input_layernorm.weight", "input_layernorm.bias",
                          "self_attention.linear_proj.weight", "self_attention.linear_proj.bias",
                          "self_attention.linear_qkv.weight", "self_attention.linear_qkv.bias",
                          "pre_mlp_layernorm.weight", "pre_mlp_layernorm.bias", "mlp.linear_fc1.weight",
                          "mlp.linear_fc1.bias", "mlp.linear_fc2.weight", "mlp.linear_fc2.bias"}));
}

// On every rank of a grid, the same parameters with the same items, under one name each; also in groups.
TEST(Respelling, OnlyRenamesAndMoves) {
  LayerPattern groups = parse_pattern("[M-]M[*-]", Dialect::kGrouped);
  for (const std::string& model : golden_models())
    for (const LayerPattern* grouped : {static_cast<const LayerPattern*>(nullptr), &std::as_const(groups)}) {
      if (grouped && model != "nemotron_h") continue;
      ModelMap map = golden_map(model);
      RunSetup usual{.vocab_rows = 0, .params_dtype = {}, .groups = grouped}, other = usual;
      other.spelling = spelled({"unfused-norms", "submodule-conv"});
      std::vector<ModelParameter> a = map.parameters(Grid{}, Cell{}, usual),
                                  b = map.parameters(Grid{}, Cell{}, other);
      auto described = [](const std::string& name, const ModelParameter& p) {
        return cat(name, " ", to_string(p.shape()), " of ", p.sources[0], " in unit ", p.unit);
      };
      std::set<std::string> want, got;
      for (const ModelParameter& p : a) {
        std::optional<Respelt> o = other_name(p.global_name);
        bool moved = o && other.spelling.has(o->row);
        want.insert(described(moved ? o->name : p.global_name, p));
      }
      for (const ModelParameter& p : b) got.insert(described(p.global_name, p));
      EXPECT_EQ(want.size(), a.size()) << model;
      EXPECT_EQ(b.size(), a.size()) << model;
      EXPECT_EQ(want, got) << model;
    }
}

// The spelling that a checkpoint of these names has, "" for the usual one.
std::string stored(const ModelMap& map, const std::set<std::string>& keys) {
  std::string out;
  std::string told = thrown_by([&] {
    out = to_string(stored_spelling(map, {}, [&](const std::string& name) { return keys.contains(name); }));
  });
  return told == "nothing" ? out : told;
}

TEST(StoredSpelling, IsThatOfTheKeys) {
  ModelMap map = golden_map("nemotron_h");
  for (std::vector<std::string> words : {std::vector<std::string>{},
                                         {"unfused-norms"},
                                         {"submodule-conv"},
                                         {"submodule-conv", "unfused-norms"}}) {
    RunSetup setup{.vocab_rows = 0, .params_dtype = {}, .spelling = spelled(words)};
    std::set<std::string> keys;
    for (const ModelParameter& p : map.parameters(Grid{}, Cell{}, setup)) keys.insert(p.global_name);
    EXPECT_EQ(stored(map, keys), to_string(spelled(words)));
    // In parts the names are the same.
    for (const char* name : {"mixer.conv1d_weight", "mixer.conv1d.weight"})
      for (int layer : {0, 2})
        if (keys.erase(cat("decoder.layers.", layer, ".", name)) > 0)
          for (const char* part : {".x", ".B", ".C"})
            keys.insert(cat("decoder.layers.", layer, ".", name, part));
    EXPECT_EQ(stored(map, keys), to_string(spelled(words)));
  }
}

TEST(StoredSpelling, RefusesTwoNamesAndTwoSpellings) {
  ModelMap map = golden_map("nemotron_h");
  std::set<std::string> keys;
  for (const ModelParameter& p : map.parameters(Grid{}, Cell{}, {})) keys.insert(p.global_name);
  std::set<std::string> both = keys, mixed = keys;
  both.insert("decoder.layers.2.mixer.conv1d.bias");
  std::string told = stored(map, both);
  for (const char* word :
       {"MC2005", "decoder.layers.2.mixer.conv1d_bias", "decoder.layers.2.mixer.conv1d.bias"})
    EXPECT_NE(told.find(word), std::string::npos) << told;
  mixed.erase("decoder.layers.0.mixer.conv1d_bias"), mixed.insert("decoder.layers.0.mixer.conv1d.bias");
  told = stored(map, mixed);
  EXPECT_NE(told.find("differently"), std::string::npos) << told;
  std::set<std::string> norms = keys;
  norms.insert("decoder.final_layernorm.weight");
  EXPECT_NE(stored(map, norms).find("two names"), std::string::npos) << stored(map, norms);
}

}  // namespace respelling_test
}  // namespace mckpt::impl
