#include "core/items/cast_losses.h"
#include "core/items/dtype.h"
#include "core/items/item_cast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace mckpt::impl {
namespace cast_losses_test {

std::vector<u8> stored_as(DType dtype, const std::vector<double>& values) {
  std::vector<u8> out(static_cast<std::size_t>(dtype_bytes(dtype, std::ssize(values))));
  std::vector<float> narrow(values.begin(), values.end());
  if (dtype == DType::kF64)
    std::memcpy(out.data(), values.data(), out.size());
  else
    cast_items({DType::kF32, DType::kF32, dtype, 0, 0}, reinterpret_cast<const u8*>(narrow.data()),
               out.data(), std::ssize(narrow));
  return out;
}

std::pair<i64, i64> losses(const ItemCast& c, const std::vector<double>& values) {
  std::vector<u8> from = stored_as(c.from, values);
  std::vector<u8> to(static_cast<std::size_t>(dtype_bytes(c.to, std::ssize(values))));
  cast_items(c, from.data(), to.data(), std::ssize(values));
  CastLosses l = cast_losses(c, from.data(), to.data(), std::ssize(values));
  return {l.infinite, l.zero};
}

using Pair = std::pair<i64, i64>;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr DType kBf = DType::kBF16, kHalf = DType::kF16, kSingle = DType::kF32, kDouble = DType::kF64;

TEST(CastLosses, CountsFiniteValuesThatBecomeInfiniteAndOthersThatBecomeZero) {
  std::vector<double> values = {1e5, -1e5, 1, 0, -0.0, 1e-30, -1e-30, 1e-31, kInf, -kInf, std::nan("")};
  EXPECT_EQ(losses({kBf, kHalf, kHalf, 0, 0}, values), Pair(2, 3));
  EXPECT_EQ(losses({kSingle, kHalf, kHalf, 0, 0}, values), Pair(2, 3));
  EXPECT_EQ(losses({kDouble, kHalf, kHalf, 0, 0}, values), Pair(2, 3));
  EXPECT_EQ(losses({kSingle, kBf, kBf, 0, 0}, values), Pair(0, 0));
  EXPECT_EQ(losses({kSingle, kBf, kBf, 0, 0}, {3.4e38, 1e-45}), Pair(1, 1));
  EXPECT_EQ(losses({kDouble, kSingle, kSingle, 0, 0}, {1e300, 1e-300, 1}), Pair(1, 1));
}

TEST(CastLosses, SeesWhatTheTypeInBetweenLost) {
  EXPECT_EQ(losses({kSingle, kHalf, kSingle, 0, 0}, {1e5, 1e-30, 7}), Pair(1, 1));
}

TEST(CastLosses, AConstantThatGivesZeroLosesNothing) {
  EXPECT_EQ(losses({kBf, kHalf, kHalf, -1, 0}, {1, 1, 1e5}), Pair(1, 0));
}

TEST(CastLosses, CountsMoreThanACounterOfTheItemsWidthHolds) {
  EXPECT_EQ(losses({kBf, kHalf, kHalf, 0, 0}, std::vector<double>(200'001, 1e5)), Pair(200'001, 0));
  EXPECT_EQ(losses({kBf, kHalf, kHalf, 0, 0}, std::vector<double>(200'001, 1e-30)), Pair(0, 200'001));
}

TEST(CastLosses, OnlySmallerRangesAreLookedAt) {
  EXPECT_FALSE(may_lose(no_cast(kBf)));
  EXPECT_FALSE(may_lose(no_cast(DType::kI64)));
  EXPECT_FALSE(may_lose({kBf, kBf, kSingle, 0, 0}));
  EXPECT_FALSE(may_lose({kHalf, kBf, kDouble, 0, 0}));
  EXPECT_TRUE(may_lose({kBf, kBf, kHalf, 0, 0}));
  EXPECT_TRUE(may_lose({kSingle, kBf, kSingle, 0, 0}));
  EXPECT_TRUE(may_lose({kDouble, kDouble, kSingle, 0, 0}));
}

}  // namespace cast_losses_test
}  // namespace mckpt::impl
