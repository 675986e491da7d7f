// The marks of real parameters (tensor_model_parallel, partition_dim) against the dimension that the rules
// split.
// std::regex alarms g++ 12 under sanitizers.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <gtest/gtest.h>

#include <map>
#include <regex>

#include "mappings/partition.h"
#include "tests/tools/golden_config.h"

namespace mckpt {
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

// Attention sinks are split over the heads, and real runs do not mark them.
bool marks_are_known_to_lack(const std::string& name) { return name.ends_with("softmax_offset"); }

TEST(GoldenMarks, AreTheDimensionsThatTheRulesSplit) {
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
      int dim = marks_are_known_to_lack(name) ? -1 : p.holding->partition_dim;
      EXPECT_EQ(dim, mark->second) << model << " " << name;
      compared++;
    }
    EXPECT_EQ(seen.size(), marks.size()) << model;
  }
  EXPECT_EQ(models, 20u);
  EXPECT_GT(compared, 400u);
}

// What the name alone says of a plain parameter, where no row names its rule.
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
}  // namespace mckpt
