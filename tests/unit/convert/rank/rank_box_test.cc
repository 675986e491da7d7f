// Boxes of a parameter against a walk over its items.
#include "convert/rank/rank_box.h"

#include <gtest/gtest.h>

#include "convert/jobs/held_tensors.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace rank_box_test {

ModelParameter parameter(Shape shape, int dim, Part part) {
  ModelParameter p;
  Holding holding;
  holding.shape = {shape}, holding.partition_dim = dim;
  p.holding = std::make_shared<const Holding>(std::move(holding));
  p.part = part;
  return p;
}

// The whole of a parameter, or rows of it.
HeldTensor held(const ModelParameter& p, i64 first = 0, i64 rows = -1) {
  HeldTensor h{"w", &p, p.shape(), {}, {}, {}};
  h.piece = {"", first, rows < 0 ? p.shape()[0] : rows};
  return h;
}

// The items of the ranges, one by one.
std::vector<i64> items_of(const std::optional<std::vector<ItemRange>>& ranges) {
  std::vector<i64> out;
  for (const ItemRange& r : *ranges)
    for (i64 i = r.begin; i < r.end; i++) out.push_back(i);
  return out;
}

TEST(RankBox, HasTheItemsThatAWalkVisits) {
  const ModelParameter p = parameter({3, 4, 2}, -1, {});
  for (i64 a = 0; a < 3; a++)
    for (i64 b = 0; b < 4; b++)
      for (i64 c = 0; c < 2; c++)
        for (i64 x = 1; a + x <= 3; x++)
          for (i64 y = 1; b + y <= 4; y++)
            for (i64 z = 1; c + z <= 2; z++) {
              std::vector<i64> want;
              for (i64 i = a; i < a + x; i++)
                for (i64 j = b; j < b + y; j++)
                  for (i64 k = c; k < c + z; k++) want.push_back((i * 4 + j) * 2 + k);
              EXPECT_EQ(items_of(items_of_box(held(p), {a, b, c}, {x, y, z}, BoxSpace::kCell)), want);
            }
}

TEST(RankBox, OfRowsIsOneRange) {
  const ModelParameter p = parameter({6, 4}, -1, {});
  EXPECT_EQ(items_of_box(held(p), {2, 0}, {3, 4}, BoxSpace::kCell), (std::vector<ItemRange>{{8, 20}}));
  EXPECT_EQ(items_of_box(held(p), {0, 0}, {6, 4}, BoxSpace::kCell), (std::vector<ItemRange>{{0, 24}}));
  EXPECT_EQ(items_of_box(held(p), {0, 0}, {0, 4}, BoxSpace::kCell), std::vector<ItemRange>{});
}

TEST(RankBox, IsCountedOverAllCells) {
  const ModelParameter rows = parameter({6, 4}, 0, {1, 3}), columns = parameter({6, 4}, 1, {1, 3});
  EXPECT_EQ(shape_in(held(rows), BoxSpace::kAllCells), (std::vector<i64>{18, 4}));
  EXPECT_EQ(shape_in(held(columns), BoxSpace::kAllCells), (std::vector<i64>{6, 12}));
  EXPECT_EQ(items_of_box(held(rows), {8, 0}, {2, 4}, BoxSpace::kAllCells), (std::vector<ItemRange>{{8, 16}}));
  EXPECT_EQ(items_of_box(held(columns), {1, 4}, {2, 4}, BoxSpace::kAllCells),
            (std::vector<ItemRange>{{4, 12}}));
  // On other cells.
  EXPECT_EQ(items_of_box(held(rows), {5, 0}, {2, 4}, BoxSpace::kAllCells), std::nullopt);
  EXPECT_EQ(items_of_box(held(columns), {0, 8}, {6, 4}, BoxSpace::kAllCells), std::nullopt);
}

TEST(RankBox, OfAPieceBeginsAtItsRows) {
  const ModelParameter p = parameter({6, 4}, 0, {1, 2});
  const HeldTensor v = held(p, 3, 3);  // the second half, of which both cells have 6 rows
  EXPECT_EQ(shape_in(v, BoxSpace::kAllCells), (std::vector<i64>{6, 4}));
  EXPECT_EQ(items_of_box(v, {4, 0}, {2, 4}, BoxSpace::kAllCells), (std::vector<ItemRange>{{16, 24}}));
}

}  // namespace rank_box_test
}  // namespace mckpt::impl
