// The pictures of docs/rules are what the rules draw today, and docs/rules.md shows all of them.
#include "mappings/picture/picture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "core/base/text.h"
#include "mappings/picture/layout.h"

namespace mckpt::impl {
namespace picture_test {

const RuleExample& example_named(std::string_view name) {
  auto found = std::find_if(all_examples().begin(), all_examples().end(),
                            [&](const RuleExample& e) { return e.name == name; });
  EXPECT_NE(found, all_examples().end()) << name;
  return *found;
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

TEST(RulePictures, AreWhatTheRulesDrawToday) {
  std::set<std::string> drawn;
  for (const RuleExample& example : all_examples()) {
    std::string file = cat(example.name, ".svg");
    EXPECT_TRUE(text_of(cat(MCKPT_DOCS "/rules/", file)) == draw_svg(example))
        << "docs/rules/" << file << " is not what the rule draws: run scripts/rule_pictures";
    EXPECT_TRUE(drawn.insert(file).second) << file;
  }
  for (const auto& entry : std::filesystem::directory_iterator(MCKPT_DOCS "/rules"))
    EXPECT_TRUE(drawn.contains(entry.path().filename())) << entry.path() << " belongs to no example";
}

TEST(RulePictures, AreAllShownWithEveryRuleInItsSection) {
  std::string page = text_of(MCKPT_DOCS "/rules.md");
  for (const Rule& rule : all_rules())
    EXPECT_NE(page.find(cat("### `", rule.name, "`\n")), page.npos) << rule.name << " has no section";
  for (const RuleExample& example : all_examples())
    EXPECT_NE(page.find(cat("](rules/", example.name, ".svg)")), page.npos) << example.name;
}

TEST(RulePictures, ShowEveryItemOfEveryRule) {
  for (const Rule& rule : all_rules())
    EXPECT_TRUE(std::any_of(all_examples().begin(), all_examples().end(), [&](const RuleExample& e) {
      return e.rule == rule.name;
    })) << rule.name;
  for (const RuleExample& example : all_examples()) {
    std::set<char> letters;
    for (const SourcePart& part : example.parts)
      EXPECT_TRUE(letters.insert(part.name[0]).second) << example.name << ": " << part.name;
    Picture picture = lay_out(example);
    std::set<std::pair<i32, i64>> in_cells;
    for (const Panel& cell : picture.cells)
      for (const Square& square : cell.squares) in_cells.insert({square.part, square.item});
    for (const Panel& source : picture.sources)
      for (const Square& square : source.squares) {
        EXPECT_GE(square.part, 0) << example.name << " has an item without a name: " << square.item;
        EXPECT_TRUE(in_cells.contains({square.part, square.item})) << example.name << ": " << square.item;
      }
  }
}

TEST(RulePictures, AreTextAsWell) {
  EXPECT_EQ(draw_text(example_named("gated_mlp")),
            "gated_mlp: a gated MLP of width 4\n"
            "\n"
            "  gate_proj     up_proj\n"
            "  [4, 2]        [4, 2]\n"
            "  g0  g1        u0  u1\n"
            "  g2  g3        u2  u3\n"
            "  g4  g5        u4  u5\n"
            "  g6  g7        u6  u7\n"
            "\n"
            "  cell 0         cell 1\n"
            "  [4, 2]         [4, 2]\n"
            "  g0  g1  _w     g4  g5  _w\n"
            "  g2  g3         g6  g7\n"
            "  u0  u1  _v     u4  u5  _v\n"
            "  u2  u3         u6  u7\n"
            "\n"
            "  g gate  u up\n");
  EXPECT_EQ(draw_text(example_named("expert_row_transposed")),
            "expert_row_transposed: 2 experts of width 4, stored [E, I, H]\n"
            "\n"
            "  down_proj\n"
            "  [2, 4, 3]\n"
            "  d0  d1  d2\n"
            "  d3  d4  d5\n"
            "  d6  d7  d8\n"
            "  d9 d10 d11\n"
            "\n"
            " d12 d13 d14\n"
            " d15 d16 d17\n"
            " d18 d19 d20\n"
            " d21 d22 d23\n"
            "\n"
            "  expert 0, cell 0     expert 0, cell 1     expert 1, cell 0     expert 1, cell 1\n"
            "  [3, 2]               [3, 2]               [3, 2]               [3, 2]\n"
            "  d0  d3               d6  d9              d12 d15              d18 d21\n"
            "  d1  d4               d7 d10              d13 d16              d19 d22\n"
            "  d2  d5               d8 d11              d14 d17              d20 d23\n"
            "\n"
            "  d down\n");
}

TEST(RulePictures, AreWellFormed) {
  for (const RuleExample& example : all_examples()) {
    std::string svg = draw_svg(example);
    EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"")) << example.name;
    EXPECT_TRUE(svg.ends_with("</svg>\n")) << example.name;
    EXPECT_EQ(svg.find("width=\"0\""), svg.npos) << example.name;
    EXPECT_EQ(std::count(svg.begin(), svg.end(), '<'), std::count(svg.begin(), svg.end(), '>'))
        << example.name;
  }
}

}  // namespace picture_test
}  // namespace mckpt::impl
