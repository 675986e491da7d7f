#include "convert/jobs/box_moves.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "core/items/move.h"
#include "core/items/shape.h"

namespace mckpt::impl {
namespace {

struct Box {
  std::vector<i64> offsets, sizes;

  BoxView view() const { return {offsets, sizes}; }
  i64 items() const {
    i64 n = 1;
    for (i64 s : sizes) n *= s;
    return n;
  }
  // The coordinates of an item of the box in the tensor.
  std::vector<i64> coordinates(i64 item) const {
    std::vector<i64> at(sizes.size());
    for (std::size_t d = sizes.size(); d-- > 0; item /= sizes[d]) at[d] = offsets[d] + item % sizes[d];
    return at;
  }
};

Box random_box(std::mt19937& random, std::span<const i64> dims) {
  auto upto = [&](i64 n) { return std::uniform_int_distribution<i64>(0, n)(random); };
  Box b;
  for (i64 d : dims) {
    b.offsets.push_back(upto(d - 1));
    // Whole dimensions stand often: that is where two become one.
    if (upto(2) == 0) b.offsets.back() = 0;
    b.sizes.push_back(upto(1) == 0 ? d - b.offsets.back() : upto(d - b.offsets.back()));
  }
  return b;
}

// Every item of `to` that `from` has as well, with the item of `from` that is the same one.
std::map<i64, i64> expected_pairs(const Box& from, const Box& to) {
  std::map<std::vector<i64>, i64> of_from;
  for (i64 i = 0; i < from.items(); i++) of_from[from.coordinates(i)] = i;
  std::map<i64, i64> out;
  for (i64 i = 0; i < to.items(); i++)
    if (auto at = of_from.find(to.coordinates(i)); at != of_from.end()) out[i] = at->second;
  return out;
}

// The same as the moves have it; an item that is written twice makes the test fail.
std::map<i64, i64> moved_pairs(const std::vector<Move>& moves) {
  std::map<i64, i64> out;
  for (const Move& m : moves)
    for (i64 o = 0; o < m.outer.count; o++)
      for (i64 i = 0; i < m.inner.count; i++)
        for (i64 k = 0; k < m.length; k++) {
          i64 to = m.to + o * m.outer.to_stride + i * m.inner.to_stride + k;
          i64 from = m.from + o * m.outer.from_stride + i * m.inner.from_stride + k;
          EXPECT_TRUE(out.emplace(to, from).second) << "item " << to << " is written twice";
        }
  return out;
}

TEST(BoxMoves, CarryWhatTwoBoxesShareAndNothingElse) {
  std::mt19937 random(3);
  i64 shared = 0;
  for (int round = 0; round < 40'000; round++) {
    std::vector<i64> dims(std::uniform_int_distribution<std::size_t>(0, 4)(random));
    for (i64& d : dims) d = std::uniform_int_distribution<i64>(1, 5)(random);
    Box from = random_box(random, dims), to = random_box(random, dims);
    std::vector<Move> moves;
    append_box_moves(from.view(), to.view(), 7, moves);
    for (const Move& m : moves) ASSERT_EQ(m.slot, 7);
    std::map<i64, i64> expected = expected_pairs(from, to);
    shared += std::ssize(expected);
    ASSERT_EQ(moved_pairs(moves), expected)
        << dims_to_string(dims) << ": " << dims_to_string(from.offsets) << "+" << dims_to_string(from.sizes)
        << " to " << dims_to_string(to.offsets) << "+" << dims_to_string(to.sizes);
  }
  EXPECT_GT(shared, 10'000);
}

TEST(BoxMoves, TakeWholeRowsAsOne) {
  std::vector<Move> moves;
  std::vector<i64> zero{0, 0, 0}, all{6, 4, 5}, begin{2, 0, 0}, rows{3, 4, 5};
  append_box_moves({zero, all}, {begin, rows}, 0, moves);
  ASSERT_EQ(moves.size(), 1u);
  EXPECT_EQ(moves[0].length, 60);
  EXPECT_EQ(moves[0].from, 40);
  EXPECT_EQ(moves[0].to, 0);
}

}  // namespace
}  // namespace mckpt::impl
