// Every family over many grids: each item of each Hugging Face tensor is held exactly once by the tensor- and
// expert-parallel cells of a replica, and stages and experts share the parameters without loss.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "core/base/text.h"
#include "core/items/tiling.h"
#include "mappings/family.h"
#include "mappings/fsdp/layout.h"
#include "mappings/fsdp/setup.h"
#include "mappings/model/parameter.h"
#include "mappings/model/walk.h"
#include "mappings/needs.h"
#include "mappings/registry.h"
#include "tests/support/even_copies.h"
#include "tests/support/golden_config.h"
#include "tests/support/tensor_list.h"

namespace mckpt::impl {
namespace model_coverage_test {

struct GridCase {
  i64 tp, ep, etp, pp;
};

// Grids over which all golden models divide: 2 linear-attention key heads a cell, 4 groups, 16 experts.
constexpr GridCase kGrids[] = {{1, 1, 1, 1}, {2, 1, 1, 1}, {4, 2, 1, 1},
                               {2, 4, 2, 1}, {1, 8, 1, 1}, {4, 1, 4, 1}};

Grid grid_of(const GridCase& c) {
  Grid g;
  g.tp = c.tp;
  g.ep = c.ep;
  g.etp = c.etp;
  g.pp = c.pp;
  g.dp = smallest_dp(g);
  check_grid(g);
  return g;
}

// The runs of one replica by source tensor. Ranks that hold the same are counted once.
class Held {
 public:
  void add(const ModelParameter& p, const Cell& cell) {
    if (p.section->stage == Stage::kTiedOutput) return;  // a second embedding
    bool replicated = p.holding->partition_dim < 0;
    i64 part = replicated ? 0 : p.part.index;
    if ((replicated && p.part.index > 0) || !seen_.emplace(p.global_name, part).second) return;
    EXPECT_TRUE(p.expert() || cell.ep >= 0);
    for (ItemRun run : p.holding->runs) {
      if (run.slot == kPaddingSlot) continue;
      bool copy = is_copy(run.slot);
      i32 source = p.sources[static_cast<std::size_t>(copy ? copied_slot(run.slot) : run.slot)];
      run.slot = 0;
      (copy ? copies_ : runs_)[source].push_back(run);
    }
  }

  const std::map<i32, std::vector<ItemRun>>& runs() const { return runs_; }
  const std::map<i32, std::vector<ItemRun>>& copies() const { return copies_; }

 private:
  std::set<std::pair<std::string, i64>> seen_;
  std::map<i32, std::vector<ItemRun>> runs_, copies_;
};

// Every item of every source is held exactly once, and as a copy as often as the others of its tensor.
void expect_covered(const std::string& what, const ModelMap& map, const Grid& grid) {
  std::map<std::string, Shape> shapes = promised_shapes(map);
  ASSERT_EQ(shapes.size(), static_cast<std::size_t>(map.sources().size())) << what;
  Held held;
  for (i64 rank = 0; rank < grid.world(); rank++)
    for (const ModelParameter& p : golden_parameters(map, grid, rank)) held.add(p, cell_of(grid, rank));
  ASSERT_EQ(held.runs().size(), static_cast<std::size_t>(map.sources().size()))
      << what << " " << to_string(grid);
  auto name_of = [&](i32 source) { return std::string(map.sources()[source].name); };
  for (const auto& [source, runs] : held.runs())
    EXPECT_FALSE(tiling_fault(runs, shapes.at(name_of(source)).items()))
        << what << " " << to_string(grid) << " " << name_of(source);
  for (const auto& [source, runs] : held.copies())
    EXPECT_TRUE(are_even(runs, shapes.at(name_of(source)).items()))
        << what << " " << to_string(grid) << " " << name_of(source);
}

i64 rows_with(const Section& section, Needs condition) {
  i64 rows = 0;
  for (const RowList& list : row_lists(section))
    rows += std::ranges::count(list.rows, condition, &Row::needs);
  return rows;
}

// No model meets a condition that its family's list leaves out; some row asks for each condition in it.
TEST(ModelCoverage, FamiliesNameTheConditionsThatTheirModelsMeet) {
  for (const std::string& model : all_models()) {
    HfConfig c = golden_config(model);
    for (int needs = 0; needs <= static_cast<int>(Needs::kExpertsHub); needs++) {
      Needs condition{needs};
      if (is_expert_form(condition)) continue;
      for (const Section& section : c.family->sections) {
        const TowerConfig& tower = tower_of(c.model, section.tower);
        if (rows_with(section, condition) == 0 || !holds(condition, c.model, tower, Needs::kAlways)) continue;
        EXPECT_TRUE(family_has(*c.family, condition)) << model << " " << needs_name(condition);
      }
    }
  }
  for (const Family* family : all_families())
    for (Needs condition : family->conditions) {
      i64 rows = 0;
      for (const Section& section : family->sections) rows += rows_with(section, condition);
      EXPECT_GT(rows, 0) << family->name << " " << needs_name(condition);
    }
}

TEST(ModelCoverage, EveryItemOfEveryTensorIsHeldOnceOnEveryGrid) {
  for (const std::string& model : all_models()) {
    if (model.starts_with("tiny")) continue;
    ModelMap map = golden_map(model);
    for (const GridCase& c : kGrids)
      if (c.ep == 1 || map.model().moe.experts > 0) expect_covered(model, map, grid_of(c));
  }
}

// Numbers of its own for every size, odd ones too, so that the grid divides what it splits and nothing else.
class OddModel {
 public:
  explicit OddModel(u32 seed) : random_(seed) {}

  GridCase grid(const ModelConfig& m) {
    GridCase c{up_to(6), 1, 1, 1};
    if (m.moe.experts > 0) c.ep = up_to(4), c.etp = up_to(3);
    i64 layers = std::ssize(m.text.layers), stages = up_to(4);
    bool shares = std::ranges::any_of(
        m.layer_sizes, [](const TowerConfig& t) { return t.key_values == KeyValues::kOfEarlierLayer; });
    if (layers % stages == 0 && m.layer_input == 0 && !shares) c.pp = stages;
    return c;
  }

  void change(ModelConfig& m, const GridCase& c) {
    m.vocab = 1 + up_to(40);
    tower(m.text, c.tp, m.tp_within_groups);
    m.text.hidden = c.tp * up_to(5);
    for (TowerConfig& t : m.layer_sizes) tower(t, c.tp, m.tp_within_groups), t.hidden = m.text.hidden;
    if (m.layer_input > 0) m.layer_input = c.tp * up_to(3);
    if (m.vision_tower.heads > 0) vision(m, c.tp);
    if (m.vision.projector > 0) m.vision.projector = c.tp * up_to(5);
    if (m.audio.projector > 0) m.audio.projector = c.tp * up_to(5);
    if (m.moe.experts > 0) {
      m.moe.experts = c.ep * up_to(4);
      m.moe.ffn = c.etp * up_to(5);
      if (m.moe.shared_ffn > 0) m.moe.shared_ffn = c.tp * up_to(4);
      if (m.moe.latent > 0) m.moe.latent = up_to(7);
      if (m.moe.second_ffn > 0) m.moe.second_ffn = c.etp * up_to(5);
    }
    if (m.compressed.mix_rank > 0) m.compressed.streams = up_to(4), m.compressed.mix_rank = up_to(5);
    if (m.ngrams.parts > 0) ngrams(m, c.tp);
    m.mla = {m.mla.q_lora > 0 ? up_to(5) : 0, up_to(5), up_to(4), up_to(3), up_to(4)};
    if (m.indexer.heads > 0) m.indexer = {up_to(4), up_to(3)};
    m.gdn.key_heads = c.tp * up_to(3);
    m.gdn.value_heads = m.gdn.key_heads * up_to(3);
    m.gdn.key_dim = up_to(4), m.gdn.value_dim = up_to(5), m.gdn.conv_kernel = up_to(4);
    m.mamba.groups = c.tp * up_to(2);
    m.mamba.heads = m.mamba.groups * up_to(3);
    m.mamba.head_dim = up_to(4), m.mamba.state = up_to(5), m.mamba.conv_kernel = up_to(4);
  }

 private:
  i64 up_to(i64 most) { return std::uniform_int_distribution<i64>(1, most)(random_); }

  void tower(TowerConfig& t, i64 tp, bool whole_groups) {
    bool few =
        up_to(4) == 1 && !whole_groups;  // groups for so many cells: their rows are cut wherever it falls
    t.kv_groups = few ? 1 : tp * up_to(3);
    t.heads = few ? tp * up_to(3) : t.kv_groups * up_to(3);
    t.head_dim = few ? tp * up_to(2) : up_to(5);
    t.ffn = tp * up_to(5);
    if (t.value_dim > 0) t.value_dim = up_to(6);
  }

  // Parts as many as leave none without rows.
  void ngrams(ModelConfig& m, i64 tp) {
    m.ngrams = {up_to(4), up_to(6), up_to(3), up_to(5), up_to(4)};
    for (TowerConfig& t : m.layer_sizes)
      if (t.ngram_rows > 0) t.ngram_rows = tp * up_to(9);
    auto leaves_one = [&](const TowerConfig& t) {
      return t.ngram_rows > 0 &&
             (m.ngrams.parts - 1) * ceil_div(t.ngram_rows, m.ngrams.parts) >= t.ngram_rows;
    };
    while (std::ranges::any_of(m.layer_sizes, leaves_one)) m.ngrams.parts--;
  }

  void vision(ModelConfig& m, i64 tp) {
    TowerConfig& t = m.vision_tower;
    t.heads = t.kv_groups = tp * up_to(3);
    t.head_dim = up_to(4);
    t.hidden = t.heads * t.head_dim;
    t.ffn = tp * up_to(5);
    m.vision.out_hidden = m.text.hidden;
    m.vision.merge = up_to(3), m.vision.patch = up_to(3), m.vision.positions = up_to(9);
  }

  std::mt19937 random_;
};

TEST(ModelCoverage, TheSameForThousandsOfOddModelsOnOddGrids) {
  i64 proved = 0;
  std::vector<std::string> families = family_models();
  for (const std::string& name : all_models())
    for (u32 seed = 0; seed < (std::ranges::count(families, name) > 0 ? 25 : 100); seed++) {
      HfConfig c = golden_config(name);
      OddModel odd(seed);
      GridCase grid = odd.grid(c.model);
      odd.change(c.model, grid);
      expect_covered(cat(name, " ", std::to_string(seed)), ModelMap::promised(c.model, *c.family),
                     grid_of(grid));
      proved++;
    }
  EXPECT_GE(proved, 2000);
}

TEST(ModelCoverage, StagesHaveTheLayersInOrderAndCountThemFromZero) {
  ModelMap map = golden_map("qwen3_dense");
  Grid grid = grid_of({2, 1, 1, 3});
  std::set<std::string> global;
  for (i64 stage = 0; stage < 3; stage++)
    for (const ModelParameter& p : golden_parameters(map, grid, stage * grid.stage_ranks())) {
      EXPECT_TRUE(global.insert(p.global_name).second) << p.global_name;
      if (p.global_name.starts_with("decoder.layers.")) {
        EXPECT_TRUE(p.name.starts_with("decoder.layers.0.")) << p.name;
        EXPECT_TRUE(p.global_name.starts_with(cat("decoder.layers.", stage, "."))) << p.global_name;
      }
    }
  EXPECT_EQ(static_cast<i64>(global.size()), map.parameter_count());
}

TEST(ModelCoverage, ATiedModelHasACopyOfTheEmbeddingOnItsLastStageOnly) {
  auto names = [](const ModelMap& map, const GridCase& c, i64 rank) {
    std::string out;
    for (const ModelParameter& p : golden_parameters(map, grid_of(c), rank))
      if (p.name.starts_with("output_layer") || p.name.starts_with("embedding")) out += cat(p.name, ";");
    return out;
  };
  EXPECT_EQ(names(golden_map("tiny_llama1"), {1, 1, 1, 1}, 0), "embedding.word_embeddings.weight;");
  HfConfig c = golden_config("tiny_llama1");
  c.model.text.layers.push_back(LayerSpec{});
  ModelMap two_layers = ModelMap::promised(c.model, *c.family);
  EXPECT_EQ(names(two_layers, {1, 1, 1, 2}, 0), "embedding.word_embeddings.weight;");
  EXPECT_EQ(names(two_layers, {1, 1, 1, 2}, 1), "output_layer.weight;");
}

TEST(ModelCoverage, AModelWithMtpNeedsTheEmbeddingOnTheLastStageToo) {
  ModelMap map = golden_map("qwen3_next_mtp");
  std::string last;
  for (const ModelParameter& p : golden_parameters(map, grid_of({1, 1, 1, 2}), 1)) last += cat(p.name, ";");
  EXPECT_TRUE(last.starts_with("embedding.word_embeddings.weight;decoder.layers.0.")) << last.substr(0, 100);
  EXPECT_NE(last.find("mtp.layers.0.eh_proj.weight;"), std::string::npos);
}

TEST(ModelCoverage, ExpertsAreCountedFromZeroOnEveryRank) {
  ModelMap map = golden_map("qwen3_moe");
  for (const ModelParameter& p : golden_parameters(map, grid_of({1, 4, 1, 1}), 2)) {
    if (!p.expert()) continue;
    i64 local = std::stoll(p.name.substr(p.name.find(".weight") + 7));
    i64 global = std::stoll(p.global_name.substr(p.global_name.find(".weight") + 7));
    EXPECT_EQ(global, local + 8);
  }
}

TEST(ModelCoverage, EveryRankOfAnFsdpRunTogetherHoldsEveryKeyOnce) {
  for (const char* model : {"qwen3_dense", "qwen3_5", "nemotron_h", "qwen3_moe", "qwen3_vl_moe"}) {
    ModelMap map = golden_map(model);
    Grid grid = grid_of({2, map.model().moe.experts > 0 ? 2 : 1, 1, 1});
    grid.dp = 4;
    std::map<std::string, i64> rows;   // held of each key
    std::map<std::string, i64> whole;  // of each key
    for (i64 rank = 0; rank < grid.world(); rank++) {
      Cell cell = cell_of(grid, rank);
      std::vector<ModelParameter> parameters = golden_parameters(map, grid, rank);
      FsdpLayout layout(parameters, map.model(), grid, {});
      for (const FsdpTensor& t : layout.tensors(cell)) {
        const ModelParameter& p = parameters[static_cast<std::size_t>(t.parameter)];
        bool replicated = p.holding->partition_dim < 0;
        // Every tensor-parallel rank has the same of what is replicated; experts without etp are held once an
        // edp rank.
        bool counts = !replicated ? true : p.expert() ? cell.etp == 0 : cell.tp == 0;
        if (p.buffer()) counts = rank == 0;
        i64 items = 1;
        for (i64 size : t.sizes) items *= size;
        rows[t.key] += counts ? items : 0;
        whole[t.key] = t.global.items();
      }
    }
    for (const auto& [key, items] : whole) EXPECT_EQ(rows[key], items) << model << " " << key;
  }
}

}  // namespace model_coverage_test
}  // namespace mckpt::impl
