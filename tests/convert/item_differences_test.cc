#include "convert/item_differences.h"

#include <gtest/gtest.h>

namespace mckpt {
namespace {

TEST(ItemDifferences, AreToldOnceATensorByItsFirstItem) {
  // file 0: 100 b 120 a 140; file 1: 100 a 180
  std::vector<Extent> extents = {
      {1, 100, 180, "a", 4}, {0, 120, 140, "a", 4}, {0, 100, 120, "b", 2}, {2, 0, 8, "c", 1}};
  std::vector<CompareSink::Difference> differences = {
      {0, 99, 101},                                 // before everything
      {0, 119, 140},                                // the last item of b, at its second byte
      {0, 124, 128}, {0, 136, 140}, {0, 140, 150},  // and behind everything
      {1, 100, 104}, {2, 7, 8}};
  std::vector<ItemDifference> found = item_differences(differences, extents);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(std::tuple(found[0].tensor, found[0].file, found[0].offset, found[0].item),
            std::tuple("b", 0, 119, 9));
  EXPECT_EQ(std::tuple(found[1].tensor, found[1].file, found[1].offset, found[1].item),
            std::tuple("a", 0, 124, 1));
  EXPECT_EQ(std::tuple(found[2].tensor, found[2].file, found[2].offset, found[2].item),
            std::tuple("c", 2, 7, 7));
}

TEST(ItemDifferences, WhatLiesBehindATensorIsNotItsOwn) {
  std::vector<CompareSink::Difference> behind = {{0, 8, 9}}, in_another_file = {{1, 2, 3}};
  EXPECT_TRUE(item_differences(behind, {{0, 0, 8, "a", 2}}).empty());
  EXPECT_TRUE(item_differences(in_another_file, {{0, 0, 8, "a", 2}}).empty());
}

TEST(ItemDifferences, OfNothingAreNone) {
  EXPECT_TRUE(item_differences({}, {{0, 0, 8, "a", 2}}).empty());
  std::vector<CompareSink::Difference> one = {{0, 4, 8}};
  EXPECT_TRUE(item_differences(one, {}).empty());
}

}  // namespace
}  // namespace mckpt
