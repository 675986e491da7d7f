// The marks of real parameters (tensor_model_parallel, partition_dim) against ours.
// std::regex alarms g++ 12 under sanitizers.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <gtest/gtest.h>

#include <map>
#include <regex>

#include "mappings/map_file/partition.h"
#include "mappings/model/parameter.h"
#include "mappings/model/parameter_marks.h"
#include "tests/support/golden_config.h"

namespace mckpt::impl {
namespace golden_marks_test {

// model -> name without numbers -> dimension, -1 without a mark
std::map<std::string, std::map<std::string, int>> golden_marks() {
  std::map<std::string, std::map<std::string, int>> marks;
  std::ifstream in(MCKPT_TEST_DATA "/golden/marks.txt");
  for (std::string model, name, mark; in >> model >> name >> mark;)
    marks[model][name] = mark == "-" ? -1 : std::stoi(mark);
  return marks;
}

std::string bare(const std::string& name) {
  std::string out = std::regex_replace(name, std::regex("\\.[0-9]+\\."), ".#.");
  return std::regex_replace(out, std::regex("[0-9]+$"), "#");
}

TEST(GoldenMarks, AreThoseOfParameters) {
  std::size_t compared = 0, models = 0;
  for (const auto& [model, marks] : golden_marks()) {
    if (model == "qwen3_moe_mlponly" || model == "qwen3_moe_sparse2")
      continue;  // the real run had other layers
    models++;
    ModelMap map = golden_map(model);
    std::set<std::string> seen;
    for (const ModelParameter& p : golden_parameters(map, {}, 0)) {
      std::string name = bare(p.name);
      if (p.buffer() || !seen.insert(name).second) continue;
      auto mark = marks.find(name);
      ASSERT_NE(mark, marks.end()) << model << " " << name;
      ParameterMarks mine = marks_of(p, {});
      EXPECT_EQ(mine.tensor_model_parallel ? mine.partition_dim : -1, mark->second) << model << " " << name;
      compared++;
    }
    EXPECT_EQ(seen.size(), marks.size()) << model;
  }
  EXPECT_EQ(models, 20u);
  EXPECT_GT(compared, 400u);
}

struct Marked {
  const char* name;
  bool parallel;
  int dim;
  i64 stride;
  bool sequence, embedding, allreduce;
  Shape logical;
};

TEST(GoldenMarks, SayWhatTheDimensionAloneDoesNot) {
  ModelMap map = golden_map("deepseek_v3");
  Grid grid{.tp = 2, .ep = 2};
  std::vector<ModelParameter> parameters = golden_parameters(map, grid, 0);
  const ModelConfig& m = map.model();
  const TowerConfig& t = m.text;
  const Marked cases[] = {
      {"embedding.word_embeddings.weight", true, 0, 1, false, true, true, {m.vocab, t.hidden}},
      {"decoder.layers.0.input_layernorm.weight", false, -1, 1, true, false, true, {t.hidden}},
      {"decoder.layers.0.mlp.linear_fc1.weight", true, 0, 2, false, false, true, {2 * t.ffn, t.hidden}},
      {"decoder.layers.0.self_attention.linear_kv_down_proj.weight",
       false,
       0,
       1,
       true,
       false,
       true,
       {m.mla.kv_lora + m.mla.rope, t.hidden}},
      // Experts are split over the expert-tensor-parallel ranks, of which there is one.
      {"decoder.layers.1.mlp.experts.linear_fc2.weight0",
       true,
       1,
       1,
       false,
       false,
       false,
       {t.hidden, m.moe.ffn}},
      {"decoder.layers.1.mlp.router.weight", false, -1, 1, true, false, true, {m.moe.experts, t.hidden}},
  };
  for (const Marked& c : cases) {
    auto p = std::ranges::find(parameters, c.name, &ModelParameter::name);
    ASSERT_NE(p, parameters.end()) << c.name;
    ParameterMarks want{c.parallel, c.dim, c.stride, c.sequence, c.embedding, c.allreduce, c.logical};
    EXPECT_EQ(marks_of(*p, grid), want) << c.name;
  }
}

// The marks of a plain parameter by its name alone, where no row names its rule.
TEST(GoldenMarks, AreWhatTheNamesOfPlainParametersSay) {
  std::size_t plain = 0;
  for (const auto& [model, marks] : golden_marks()) {
    ModelMap map = golden_map(model);
    for (const ModelParameter& p : golden_parameters(map, {}, 0)) {
      std::string_view rule = p.row->rule;
      if (rule != "column" && rule != "row" && rule != "replicate" && rule != "vocab") continue;
      bool ungated =
          p.name.find("linear_fc1.weight") != p.name.npos || p.name.find("linear_fc1.bias") != p.name.npos;
      if (ungated) continue;  // by its name it could be gated
      EXPECT_EQ(partition_of({p.name, p.shape().rank()}).dim, p.holding->partition_dim)
          << model << " " << p.name;
      plain++;
    }
  }
  EXPECT_GT(plain, 900u);
}

}  // namespace golden_marks_test
}  // namespace mckpt::impl
