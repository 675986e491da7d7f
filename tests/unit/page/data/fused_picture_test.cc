// The content of the picture of a fused parameter: its axis, its rows, its lines.
#include "page/data/fused_picture.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mckpt::impl {
namespace fused_picture_test {

FusedPicture gated() {
  FusedPicture p{.title = "fc1", .about = "[10, 4]"};
  p.cut = {.parts = {{"_w", {0, 20}}, {"_v", {20, 40}}},
           .shares = {{0, {0, 16}}, {1, {16, 32}}, {2, {32, 40}}, {3, {0, 0}}}};
  return p;
}

// `ranks` equal shares of two parts of one size.
FusedCut cut_of(i64 ranks) {
  FusedCut cut{.parts = {{"_w", {0, 5 * ranks}}, {"_v", {5 * ranks, 10 * ranks}}}};
  for (i64 r = 0; r < ranks; r++) cut.shares.push_back({r, {10 * r, 10 * r + 10}});
  return cut;
}

TEST(FusedAxis, IsInProportionWhereNoPartIsNarrow) {
  const FusedCut cut = gated().cut;
  const FusedAxis axis(cut, 0.1);
  for (i64 item : {0, 10, 20, 30, 40}) EXPECT_DOUBLE_EQ(axis.at(item), static_cast<double>(item) / 40);
}

TEST(FusedAxis, ShowsPartsThatAreNarrow) {
  const FusedCut cut{.parts = {{"a", {0, 1000}}, {"b", {1000, 1001}}, {"c", {1001, 1002}}}};
  const FusedAxis axis(cut, 0.1);
  EXPECT_DOUBLE_EQ(axis.at(0), 0);
  EXPECT_DOUBLE_EQ(axis.at(500), 0.4);
  EXPECT_DOUBLE_EQ(axis.at(1000), 0.8);
  EXPECT_DOUBLE_EQ(axis.at(1001), 0.9);
  EXPECT_DOUBLE_EQ(axis.at(1002), 1);
}

TEST(FusedRows, OfManyRanksHaveThoseWithSeveralPartsAndBothEnds) {
  const std::vector<FusedRow> rows = fused_rows(cut_of(101), 5);
  i64 drawn = 0, left = 0;
  bool middle = false;
  for (const FusedRow& row : rows) {
    row.share < 0 ? left += row.ranks : drawn++;
    middle |= row.share == 50;  // items 500 to 509, of which W has 5
  }
  EXPECT_EQ(drawn, 5);
  EXPECT_EQ(left, 96);
  EXPECT_TRUE(middle);
  EXPECT_EQ(rows.front().share, 0);
  EXPECT_EQ(rows.back().share, 100);
}

TEST(FusedText, HasALetterForEachItemAndTheNumbers) {
  const std::string text = fused_text(gated(), 96);
  for (const char* line : {
           "parts       WWWWWWWWWWWWWWWWWWWWVVVVVVVVVVVVVVVVVVVV\n",
           "rank 1                      WWWWVVVVVVVVVVVV          W 4, V 12\n",
           "  by count  WWWWWWWWVVVVVVVV                          8 right, 8 wrong, 0 lost\n",
           "  by count                  ................          0 right, 0 wrong, 16 lost\n",
           "ranks from 3 on: 1 rank with nothing of it\n",
           "of 40 items: 8 right, 8 wrong, 24 lost\n",
       })
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST(FusedText, HasDifferentLettersForAllParts) {
  FusedPicture p{.title = "in_proj", .about = ""};
  p.cut.parts = {{".query", {0, 6}}, {".key", {6, 12}},   {".value", {12, 18}},
                 {".z", {18, 24}},   {".beta", {24, 26}}, {".alpha", {26, 28}}};
  p.cut.shares = {{0, {0, 28}}};
  const std::string text = fused_text(p, 200);
  EXPECT_NE(text.find("parts       qqqqqqkkkkkkvvvvvvzzzzzzbbaa\n"), std::string::npos) << text;
  EXPECT_NE(text.find("28 right, 0 wrong, 0 lost"), std::string::npos) << text;
}

}  // namespace fused_picture_test
}  // namespace mckpt::impl
