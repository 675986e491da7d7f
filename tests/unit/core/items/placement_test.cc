#include "core/items/placement.h"
#include "core/base/error.h"
#include "core/items/item_run.h"

#include <gtest/gtest.h>

namespace mckpt::impl {
namespace placement_test {

TEST(Placement, PrintsAsTorchDoes) {
  EXPECT_EQ(to_string(Placement{PlacementKind::kShard, 1, 1}), "Shard(1)");
  EXPECT_EQ(to_string(Placement{}), "Replicate()");
  EXPECT_EQ(to_string(Placement{PlacementKind::kStridedShard, 0, 2}), "_StridedShard(0, sf=2)");
}

TEST(Placement, ChunkPartsAreThoseOfTorchChunk) {
  // Rows of each rank as torch 2.11 gives them.
  auto rows = [](i64 n, i64 parts) {
    std::vector<i64> sizes;
    for (i64 i = 0; i < parts; i++) sizes.push_back(chunk_part(n, parts, i).items());
    return sizes;
  };
  EXPECT_EQ(rows(11, 3), (std::vector<i64>{4, 4, 3}));
  EXPECT_EQ(rows(4, 3), (std::vector<i64>{2, 2, 0}));
  EXPECT_EQ(rows(10, 4), (std::vector<i64>{3, 3, 3, 1}));
  EXPECT_EQ(rows(0, 2), (std::vector<i64>{0, 0}));
  EXPECT_EQ(chunk_part(4, 3, 2), (ItemRange{4, 4}));
}

TEST(Placement, EqualPartsMustDivide) {
  EXPECT_EQ(equal_part(12, 4, 3, "heads"), (ItemRange{9, 12}));
  try {
    equal_part(10, 4, 0, "the number of query heads");
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(
        e.what(),
        "the number of query heads does not divide by the parallel size: expected a multiple of 4, found 10");
  }
}

}  // namespace placement_test
}  // namespace mckpt::impl
