#include "core/items/shape.h"
#include "core/base/error.h"

#include <gtest/gtest.h>

#include <limits>

namespace mckpt::impl {
namespace shape_test {

std::string code(std::vector<i64> sizes) {
  try {
    Shape s{std::span<const i64>(sizes)};
    (void)s.row_items();
    return "ok";
  } catch (const Error& e) {
    return code_name(e.code());
  }
}

TEST(Shape, CountsItemsAndRows) {
  EXPECT_EQ(Shape({3, 4, 5}).items(), 60);
  EXPECT_EQ(Shape({3, 4, 5}).row_items(), 20);
  EXPECT_EQ(Shape({7}).row_items(), 1);
  EXPECT_EQ(Shape().items(), 1);
  EXPECT_EQ(Shape().row_items(), 1);
  EXPECT_EQ(Shape({0, 4}).items(), 0);
  EXPECT_EQ(to_string(Shape({2, 0})), "[2, 0]");
  EXPECT_EQ(to_string(Shape()), "[]");
  EXPECT_EQ(Shape({4, 6}).with_dim(1, 3), Shape({4, 3}));
}

TEST(Shape, HoldsManyDimensions) {
  std::vector<i64> ones(64, 1);
  ones[63] = 9;
  Shape s{std::span<const i64>(ones)};
  EXPECT_EQ(s.rank(), 64);
  EXPECT_EQ(s[63], 9);
  EXPECT_EQ(s.items(), 9);
  EXPECT_EQ(Shape(s), s);
  ones.push_back(1);
  EXPECT_EQ(code(ones), "MC0102");
}

TEST(Shape, RefusesNegativeAndOverflowingSizes) {
  const i64 max = std::numeric_limits<i64>::max();
  EXPECT_EQ(code({-1, 4}), "MC0102");
  EXPECT_EQ(code({max, 2}), "MC0101");
  EXPECT_EQ(code({i64{1} << 32, i64{1} << 31}), "MC0101");
  EXPECT_EQ(code({max}), "ok");
  EXPECT_EQ(code({0, max}), "ok");
  EXPECT_EQ(code({2, max, max, 0}), "ok");
  EXPECT_EQ(code({0, max, max}), "MC0101");  // no items, but a row of it is beyond counting
}

}  // namespace shape_test
}  // namespace mckpt::impl
