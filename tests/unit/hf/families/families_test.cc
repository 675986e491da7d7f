// Every rank of the golden runs of test_data/golden/families: names in their order, types, local shapes,
// marks and digests; under Megatron-FSDP keys, global shapes, boxes and digests; the saved checkpoints as
// wholes. A family of which a table has a single wrong row is found by family_mutations_test.cc with the same
// comparison.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "mappings/config.h"
#include "mappings/fsdp/setup.h"
#include "tests/support/family_runs.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace families_test {

// The first line in which two lists differ, "" if they are equal: a wrong row makes hundreds of differences.
std::string difference(const std::vector<std::string>& mine, const std::vector<std::string>& golden) {
  for (std::size_t i = 0; i < std::max(mine.size(), golden.size()); i++) {
    std::string a = i < mine.size() ? mine[i] : "nothing more",
                b = i < golden.size() ? golden[i] : "nothing more";
    if (a != b) return cat(a, "\n   real: ", b);
  }
  return "";
}

// Parameters in order; the real listing has buffers after them.
std::vector<std::string> held_lines(const FamilyModel& model, const Grid& grid, i64 rank) {
  std::vector<std::string> lines, buffers;
  for (const ModelParameter& p : golden_parameters(*model.map, grid, rank))
    (p.buffer() ? buffers : lines).push_back(model.held_line(p, grid));
  lines.insert(lines.end(), buffers.begin(), buffers.end());
  return lines;
}

TEST(Families, EveryRankHoldsWhatTheRealOneHolds) {
  for (const std::string& name : family_models()) {
    FamilyModel model(name);
    std::vector<PackedRun> runs = packed_runs(model.folder + "/ranks.txt").runs;
    EXPECT_GE(runs.size(), 1u) << name;
    for (const PackedRun& run : runs) {
      ASSERT_EQ(std::ssize(run.ranks), run.grid.world()) << name;
      for (i64 rank = 0; rank < run.grid.world(); rank++)
        EXPECT_EQ(difference(held_lines(model, run.grid, rank), run.ranks[static_cast<std::size_t>(rank)]),
                  "")
            << name << " " << to_string(run.grid) << " rank " << rank;
    }
  }
}

TEST(Families, EveryRankOfMegatronFsdpSavesWhatTheRealOneSaves) {
  for (const std::string& name : family_models())
    for (const auto& entry : std::filesystem::directory_iterator(golden_folder(name))) {
      if (!entry.path().filename().string().starts_with("fsdp.")) continue;
      FamilyModel model(name);
      PackedFile file = packed_runs(entry.path());
      const PackedRun& run = file.runs.at(0);
      ASSERT_EQ(std::ssize(run.ranks), run.grid.world()) << entry;
      std::map<std::string, FamilyModel::Whole> wholes;
      for (i64 rank = 0; rank < run.grid.world(); rank++)
        EXPECT_EQ(difference(model.saved_lines(*model.map, run.grid, rank, {}, wholes),
                             run.ranks[static_cast<std::size_t>(rank)]),
                  "")
            << entry << " rank " << rank;
      std::vector<std::string> saved;
      for (const auto& [key, whole] : wholes)
        saved.push_back(cat(key, " ", dtype_name(whole.dtype), " ", times_text(whole.shape.dims()), " ",
                            short_digest(whole.bytes)));
      std::sort(file.saved.begin(), file.saved.end());
      std::sort(saved.begin(), saved.end());
      EXPECT_EQ(difference(saved, file.saved), "") << entry;
    }
}

// Models that the real tool gets wrong or cannot build are refused.
TEST(Families, NormsThatMegatronFsdpWouldLoseAreRefused) {
  ModelMap map = golden_map("minimax_m2");
  auto layout = [&](const Grid& grid) {
    return thrown_by([&] {
      std::vector<ModelParameter> parameters = golden_parameters(map, grid, 0);
      FsdpLayout(parameters, map.model(), grid, {});
    });
  };
  EXPECT_EQ(
      layout({.tp = 2, .dp = 2}),
      "MC0203 tensor 'decoder.layers.0.self_attention.q_layernorm.weight': Megatron-FSDP cannot hold norms "
      "that are split over tensor-parallel ranks: expected `tp` 1, found 2");
  EXPECT_EQ(layout({.ep = 2, .dp = 2}), "nothing");
}

TEST(Families, ExpertsThatMegatronFsdpWouldLoseAreRefused) {
  ModelMap map = golden_map("ernie4_5_vl_moe_a");
  auto layout = [&](const Grid& grid) {
    return thrown_by([&] {
      std::vector<ModelParameter> parameters = golden_parameters(map, grid, 0);
      FsdpLayout(parameters, map.model(), grid, {});
    });
  };
  EXPECT_EQ(layout({.ep = 2, .dp = 2}),
            "MC0203 tensor "
            "'language_model.decoder.layers.1.mlp.text_moe_layer.experts.local_experts.0.linear_fc1.weight': "
            "Megatron-FSDP cannot hold experts that are modules of their own on several ranks: expected `ep` "
            "1, found 2");
  EXPECT_EQ(layout({.dp = 2}), "nothing");
}

// Megatron cuts groups of the language model, not of the tower of EXAONE 4.5.
TEST(Families, GroupsOfATowerAreNotCut) {
  ModelMap map = golden_map("exaone4_5_a");
  std::string said = thrown_by([&] { golden_parameters(map, {.tp = 8}, 0); });
  EXPECT_TRUE(said.starts_with("MC2007")) << said;
  EXPECT_EQ(thrown_by([&] { golden_parameters(golden_map("exaone4"), {.tp = 8}, 0); }), "nothing");
}

TEST(Families, FewerKeysThanQueriesAreRefusedWhereMegatronNormsAsManyKeys) {
  std::string text = golden_config_text("olmoe");
  std::size_t at = text.find("\"num_key_value_heads\": 8");
  ASSERT_NE(at, text.npos);
  text.replace(at, 24, "\"num_key_value_heads\": 4");
  EXPECT_EQ(thrown_by([&] { read_hf_config(text); }),
            "MC2003 'num_key_value_heads' is not the number of query heads; Megatron's model of this family "
            "norms as "
            "many keys as queries: expected 8, found 4");
}

// 5.2 leaves indexers out: with every second one from the third layer on, layers 0, 1, 3 and 5 have one.
TEST(Families, LayersWithoutAnIndexerUseTheOneBefore) {
  auto indexed = [](const char* entries) {
    std::string text = golden_config_text("glm_moe_dsa");
    for (const char* key : {"\"indexer_types\"", "\"mlp_layer_types\""}) {
      std::size_t at = text.find(key);
      text.erase(at, text.find(']', at) + 2 - at);
    }
    std::size_t at = text.find("\"num_hidden_layers\": 3");
    text.replace(at, 22, cat("\"num_hidden_layers\": 6, ", entries));
    std::string layers;
    for (const LayerSpec& layer : read_hf_config(text).model.text.layers)
      layers += layer.mixer == Mixer::kIndexedAttention ? 'F' : 'S';
    return layers;
  };
  EXPECT_EQ(indexed("\"index_topk_freq\": 2, \"index_skip_topk_offset\": 2"), "FFSFSF");
  EXPECT_EQ(indexed("\"index_topk_freq\": 3"), "FFSSFS");
  EXPECT_EQ(indexed("\"index_topk_pattern\": \"FSSFSF\""), "FSSFSF");
  EXPECT_EQ(indexed("\"index_topk_freq\": 1"), "FFFFFF");
}

// A model leaves pending.txt as soon as a table knows its type.
TEST(Families, PendingModelsAreThoseThatNoTableHas) {
  for (const std::string& name : pending_models()) {
    ASSERT_TRUE(std::filesystem::exists(golden_folder(name))) << name;
    EXPECT_NE(thrown_by([&] { FamilyModel model(name); }), "nothing")
        << name << " is to be taken out of pending.txt";
  }
}

}  // namespace families_test
}  // namespace mckpt::impl
