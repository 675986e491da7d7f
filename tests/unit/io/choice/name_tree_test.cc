#include "io/choice/name_tree.h"

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "tests/support/table_store.h"

namespace mckpt::impl {
namespace {

// "model 3 { layers.{0,1} x2 { w } }". Each line says whether it is the last of its depth: brackets close behind it.
std::string text(const NameTree& tree, i64& lines) {
  std::string out;
  std::vector<bool> last;  // of the lines that the next one may be below
  int depth = -1;
  auto close_to = [&](int next) {
    for (; depth > next; depth--) {
      out += " }";
      EXPECT_TRUE(last[static_cast<std::size_t>(depth)]);
    }
  };
  tree.each_line([&](const TreeLine& line) {
    lines++;
    const std::size_t at = static_cast<std::size_t>(line.depth);
    EXPECT_LE(line.depth, depth + 1);
    if (line.depth > depth && depth >= 0) out += " {";
    if (line.depth <= depth) {
      close_to(line.depth);
      EXPECT_TRUE(line.depth == 0 || !last[at]);
    }
    last.resize(at + 1);
    last[at] = line.last, depth = line.depth;
    out += cat(out.empty() ? "" : " ", line.label);
    if (line.copies > 1) out += cat(" x", line.copies);
  });
  close_to(0);
  return out;
}

std::string tree(std::vector<std::string> names, bool fold = true, std::string_view odd = "") {
  TableStore store("x");
  for (const std::string& name : names)
    store.tensors.push_back({name, DType::kF32, {name == odd ? 3 : 2}, {}});
  i64 lines = 0;
  const std::string out = text(NameTree(store, natural_order(store), fold), lines);
  EXPECT_LE(lines, static_cast<i64>(names.size()) * 3);
  return out;
}

TEST(NameTree, FoldsLayersThatAreAlike) {
  EXPECT_EQ(tree({"m.layers.0.a.w", "m.layers.0.b", "m.layers.1.a.w", "m.layers.1.b", "m.norm"}),
            "m { layers.{0,1} x2 { a.w b } norm }");
}

TEST(NameTree, KeepsLayersApartThatDiffer) {
  std::vector<std::string> names;
  for (const char* i : {"0", "1", "2", "3", "4", "7"}) names.push_back(cat("m.layers.", i, ".w"));
  EXPECT_EQ(tree(names, true, "m.layers.2.w"), "m { layers.{0,1,3,4,7} x5 { w } layers.2 { w } }");
  EXPECT_EQ(tree(names), "m { layers.{0..4,7} x6 { w } }");
}

TEST(NameTree, UnfoldsOnRequest) { EXPECT_EQ(tree({"m.0.w", "m.1.w"}, false), "m { 0 { w } 1 { w } }"); }

TEST(NameTree, FoldsExpertsInsideLayers) {
  std::vector<std::string> names;
  for (int l = 0; l < 3; l++)
    for (int e = 0; e < 4; e++) names.push_back(cat("m.layers.", l, ".experts.", e, ".w"));
  EXPECT_EQ(tree(names), "m { layers.{0..2} x3 { experts.{0..3} x4 { w } } }");
}

TEST(NameTree, FoldsGroupedExpertsThatAreAlike) {
  EXPECT_EQ(tree({"m.fc1.weight0_w", "m.fc1.weight0_v", "m.fc1.weight1_w", "m.fc1.weight1_v",
                  "m.fc1.weight12_w", "m.norm"}),
            "m { fc1.weight{0,1}_v x2 fc1.weight{0,1,12}_w x3 norm }");
  EXPECT_EQ(
      tree({"m.fc2.weight0", "m.fc2.weight1", "m.fc2.weight2", "m.fc2.bias0", "m.fc2.bias1", "m.fc2.weight"},
           true, "m.fc2.weight1"),
      "m.fc2 { bias{0,1} x2 weight weight{0,2} x2 weight1 }");
  EXPECT_EQ(tree({"m.weight0", "m.weight1"}, false), "m { weight0 weight1 }");
  EXPECT_EQ(tree({"m.w1", "m.w2", "m.weight_1", "m.weight_2"}), "m { w1 w2 weight_1 weight_2 }");
}

TEST(NameTree, DrawsNoBranchForASingleTensor) {
  EXPECT_EQ(tree({"lm_head.weight", "a", "m.x.y.w", "m.x.y.v"}), "a lm_head.weight m.x.y { v w }");
}

// Parts that only one name has are one node, and show the lines that they would show by themselves.
TEST(NameTree, JoinsPartsThatOneNameHas) {
  EXPECT_EQ(tree({"a.1.2.3.4.w", "a.1.2.3.5.w", "b.1.c.d.e"}), "a.1.2 { 3.{4,5} x2 { w } } b.1.c.d.e");
  EXPECT_EQ(tree({"a.1.2.3.4.w", "a.1.2.3.5.v", "a.1.9.x.y.z.w"}),
            "a { 1.2 { 3.4 { w } 3.5 { v } } 1.9 { x.y.z.w } }");
  EXPECT_EQ(tree({"m.7.a.b.c.d", "m.8.a.b.c.d", "m.9.a.b.c.e"}), "m { {7,8} x2 { a.b.c.d } 9 { a.b.c.e } }");
  EXPECT_EQ(tree({"m.x.pt.y.z.w", "m.x.pt.y.z.v"}), "m.x.pt.y.z { v w }");
}

// A file's name is one part, with its dots; a colon that ends no file's name is a letter like others.
TEST(NameTree, DoesNotDivideNamesOfFiles) {
  EXPECT_EQ(tree({"a.b.pt:m.v", "a.b.pt:m.w", "a.bin:v", "a.bin:w"}), "a.b.pt:m { v w } a.bin { v w }");
  EXPECT_EQ(tree({"x.pt:w", "y.pt:layers.0.w", "y.pt:layers.1.w"}), "x.pt:w y.pt { layers.{0,1} x2 { w } }");
  EXPECT_EQ(tree({"m.a:x.v", "m.a:x.w", "m.b"}), "m { a:x.v a:x.w b }");
}

TEST(NameTree, TakesNumbersAtTheTopAndAtTheEnd) {
  EXPECT_EQ(tree({"0", "1", "2"}), "0 1 2");
  EXPECT_EQ(tree({"m.0", "m.1", "m.2"}), "m { {0..2} x3 }");
}

TEST(NameTree, TakesATensorThatIsAlsoABranch) {
  EXPECT_EQ(tree({"m.a", "m.a.b"}), "m { a a.b }");
  EXPECT_EQ(tree({"m.0", "m.0.b", "m.1", "m.1.b"}), "m { {0,1} x2 { (itself) b } }");
}

TEST(NameTree, TakesNamesOfAnyShape) {
  std::string dots(100'000, '.');
  EXPECT_FALSE(tree({"", ".", "..", "a.", ".a", dots, dots + "x"}).empty());
}

}  // namespace
}  // namespace mckpt::impl
