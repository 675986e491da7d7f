#include "core/items/stretch_boxes.h"

#include <gtest/gtest.h>

#include <random>

#include "core/base/text.h"
#include "core/items/shape.h"

namespace mckpt::impl {
namespace stretch_boxes_test {

std::string dump(const std::vector<i64>& dims, i64 begin, i64 end) {
  std::vector<i64> numbers;
  const i64 boxes = stretch_boxes(dims, {begin, end}, numbers);
  EXPECT_EQ(std::ssize(numbers), boxes * 2 * std::ssize(dims));
  std::string out;
  for (i64 b = 0; b < boxes; b++) {
    auto at = numbers.begin() + b * 2 * std::ssize(dims);
    std::vector<i64> offsets(at, at + std::ssize(dims)),
        sizes(at + std::ssize(dims), at + 2 * std::ssize(dims));
    out += cat(b > 0 ? " " : "", dims_to_string(offsets), "+", dims_to_string(sizes));
  }
  return out;
}

TEST(StretchBoxes, GrowAndShrinkAgain) {
  struct Case {
    std::vector<i64> dims;
    i64 begin, end;
    const char* expected;
  };
  const Case cases[] = {
      {{4, 6}, 4, 21, "[0, 4]+[1, 2] [1, 0]+[2, 6] [3, 0]+[1, 3]"},
      {{4, 6}, 0, 24, "[0, 0]+[4, 6]"},
      {{4, 6}, 6, 18, "[1, 0]+[2, 6]"},
      {{4, 6}, 7, 9, "[1, 1]+[1, 2]"},
      {{4, 6}, 11, 13, "[1, 5]+[1, 1] [2, 0]+[1, 1]"},
      {{4, 6}, 5, 5, ""},
      {{7}, 2, 6, "[2]+[4]"},
      {{}, 0, 1, "[]+[]"},
      {{}, 0, 0, ""},
      {{0, 4}, 0, 0, ""},
      {{1, 5, 1}, 1, 4, "[0, 1, 0]+[1, 3, 1]"},
      {{2, 3, 4}, 3, 23, "[0, 0, 3]+[1, 1, 1] [0, 1, 0]+[1, 2, 4] [1, 0, 0]+[1, 2, 4] [1, 2, 0]+[1, 1, 3]"},
      {{3, 2, 2},
       1,
       11,
       "[0, 0, 1]+[1, 1, 1] [0, 1, 0]+[1, 1, 2] [1, 0, 0]+[1, 2, 2] [2, 0, 0]+[1, 1, 2] "
       "[2, 1, 0]+[1, 1, 1]"},
      {{i64{1} << 31, i64{1} << 31},
       (i64{1} << 61) - 1,
       i64{1} << 62,
       "[1073741823, 2147483647]+[1, 1] [1073741824, 0]+[1073741824, 2147483648]"},
  };
  for (const Case& c : cases) EXPECT_EQ(dump(c.dims, c.begin, c.end), c.expected) << dims_to_string(c.dims);
}

// Every item of the boxes, one box after the other, each row-major.
std::vector<i64> items_of_boxes(std::span<const i64> dims, i64 boxes, std::span<const i64> numbers) {
  std::vector<i64> out;
  const std::size_t rank = dims.size();
  for (i64 b = 0; b < boxes; b++) {
    std::span<const i64> offsets = numbers.subspan(b * 2 * rank, rank),
                         sizes = numbers.subspan((b * 2 + 1) * rank, rank);
    for (i64 i = 0; i < checked_items(sizes); i++) {
      i64 item = 0, rest = i, step = 1;
      for (std::size_t d = rank; d-- > 0; step *= dims[d], rest /= sizes[d])
        item += (offsets[d] + rest % sizes[d]) * step;
      out.push_back(item);
    }
  }
  return out;
}

TEST(StretchBoxes, AreTheItemsOfTheStretchInItsOrder) {
  std::mt19937 random(7);
  auto below = [&](i64 n) { return static_cast<i64>(random() % static_cast<u32>(n)); };
  i64 most = 0;
  for (int round = 0; round < 20'000; round++) {
    std::vector<i64> dims(below(5));
    for (i64& n : dims) n = 1 + below(round % 3 == 0 ? 3 : 5);
    const i64 items = checked_items(dims), begin = below(items + 1), end = begin + below(items - begin + 1);
    std::vector<i64> numbers, expected;
    const i64 boxes = stretch_boxes(dims, {begin, end}, numbers);
    for (i64 i = begin; i < end; i++) expected.push_back(i);
    ASSERT_EQ(items_of_boxes(dims, boxes, numbers), expected)
        << dims_to_string(dims) << " " << begin << " " << end;
    ASSERT_LE(boxes, std::max<i64>(1, 2 * std::ssize(dims) - 1));
    most = std::max(most, boxes);
  }
  EXPECT_EQ(most, 7);
}

}  // namespace stretch_boxes_test
}  // namespace mckpt::impl
