#include "live/device/pool_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

namespace mckpt {
namespace {

std::vector<PoolLife> random_lives(std::mt19937& random, int count, i64 most_bytes, i64 times) {
  std::vector<PoolLife> lives;
  for (int i = 0; i < count; i++) {
    i64 begin = static_cast<i64>(random() % static_cast<u64>(times));
    i64 length = 1 + static_cast<i64>(random() % static_cast<u64>(times - begin));
    lives.push_back({1 + static_cast<i64>(random() % static_cast<u64>(most_bytes)), begin, begin + length});
  }
  return lives;
}

i64 aligned(i64 bytes, i64 alignment) { return (bytes + alignment - 1) / alignment * alignment; }

bool overlap(i64 a, i64 a_end, i64 b, i64 b_end) { return a < b_end && b < a_end; }

// The most bytes that are live at any one time, counted time by time.
i64 naive_live(const std::vector<PoolLife>& lives, i64 times, i64 alignment) {
  i64 most = 0;
  for (i64 t = 0; t < times; t++) {
    i64 live = 0;
    for (const PoolLife& l : lives) live += l.begin <= t && t < l.end ? aligned(l.bytes, alignment) : 0;
    most = std::max(most, live);
  }
  return most;
}

// The smallest slab of all placements at whole offsets.
i64 smallest_slab(const std::vector<PoolLife>& lives, i64 at_most) {
  std::vector<i64> offsets;
  std::function<bool(i64)> fits = [&](i64 slab) {
    std::size_t next = offsets.size();
    if (next == lives.size()) return true;
    for (i64 o = 0; o + lives[next].bytes <= slab; o++) {
      bool free = true;
      for (std::size_t i = 0; i < next; i++)
        free &= !overlap(lives[i].begin, lives[i].end, lives[next].begin, lives[next].end) ||
                !overlap(offsets[i], offsets[i] + lives[i].bytes, o, o + lives[next].bytes);
      if (!free) continue;
      offsets.push_back(o);
      bool all = fits(slab);
      offsets.pop_back();
      if (all) return true;
    }
    return false;
  };
  i64 slab = 0;
  while (slab < at_most && !fits(slab)) slab++;
  return slab;
}

TEST(PoolPlan, LivesThatOverlapNeverShareMemory) {
  std::mt19937 random(3);
  for (int round = 0; round < 400; round++) {
    i64 alignment = i64{1} << random() % 10, times = 1 + static_cast<i64>(random() % 40);
    std::vector<PoolLife> lives = random_lives(random, static_cast<int>(random() % 60), 2000, times);
    PoolPlan plan = plan_pool(lives, alignment);
    ASSERT_EQ(plan.offsets.size(), lives.size());
    ASSERT_EQ(plan.live_bytes, naive_live(lives, times, alignment));
    ASSERT_GE(plan.slab_bytes, plan.live_bytes);
    for (std::size_t a = 0; a < lives.size(); a++) {
      ASSERT_GE(plan.offsets[a], 0);
      ASSERT_EQ(plan.offsets[a] % alignment, 0);
      ASSERT_LE(plan.offsets[a] + lives[a].bytes, plan.slab_bytes);
      for (std::size_t b = 0; b < a; b++) {
        if (!overlap(lives[a].begin, lives[a].end, lives[b].begin, lives[b].end)) continue;
        i64 a_end = plan.offsets[a] + lives[a].bytes, b_end = plan.offsets[b] + lives[b].bytes;
        ASSERT_FALSE(overlap(plan.offsets[a], a_end, plan.offsets[b], b_end))
            << "round " << round << ": " << a << " and " << b;
      }
    }
  }
}

TEST(PoolPlan, IsHardlyEverLargerThanTheSmallestThereIs) {
  std::mt19937 random(5);
  i64 planned = 0, smallest = 0;
  int larger = 0;
  for (int round = 0; round < 300; round++) {
    std::vector<PoolLife> lives = random_lives(random, 6, 4, 6);
    i64 slab = plan_pool(lives, 1).slab_bytes, least = smallest_slab(lives, slab);
    ASSERT_GE(slab, least);
    planned += slab, smallest += least, larger += slab > least;
  }
  EXPECT_LE(larger, 3) << planned << " bytes, not " << smallest;
}

TEST(PoolPlan, OfManyRandomLivesWastesLittle) {
  std::mt19937 random(7);
  for (int round = 0; round < 5; round++) {
    PoolPlan plan = plan_pool(random_lives(random, 300, 1 << 20, 400), 512);
    EXPECT_LE(static_cast<double>(plan.slab_bytes), 1.1 * static_cast<double>(plan.live_bytes)) << round;
  }
}

// Module after module is gathered and released, the next `ahead` ones being gathered meanwhile.
std::vector<PoolLife> modules_in_turn(const std::vector<i64>& bytes, i64 ahead) {
  std::vector<PoolLife> lives;
  for (i64 m = 0; m < std::ssize(bytes); m++)
    lives.push_back({bytes[static_cast<std::size_t>(m)], 2 * std::max<i64>(0, m - ahead), 2 * m + 1});
  return lives;
}

TEST(PoolPlan, OfModulesInTurnWastesNothingOrLittle) {
  std::vector<i64> equal(60, 1000), layers, growing;
  for (int i = 0; i < 60; i++) layers.push_back(i % 4 == 3 ? 5000 : 1300), growing.push_back(100 + 37 * i);
  for (i64 ahead : {0, 1, 2, 3}) {
    for (const std::vector<i64>& bytes : {equal, layers, growing}) {
      std::vector<PoolLife> lives = modules_in_turn(bytes, ahead);
      lives.push_back({7777, 0, 1000});  // the root's own parameters stay
      PoolPlan plan = plan_pool(lives, 256);
      double waste = ahead < 2 ? 1 : 1.1;
      EXPECT_LE(static_cast<double>(plan.slab_bytes), waste * static_cast<double>(plan.live_bytes)) << ahead;
    }
  }
}

TEST(PoolPlan, OfNothingIsEmpty) {
  PoolPlan plan = plan_pool({}, 512);
  EXPECT_EQ(plan.slab_bytes, 0);
  EXPECT_EQ(plan.live_bytes, 0);
}

TEST(PoolPlan, SizesThatDoNotFitAreRefused) {
  std::vector<PoolLife> lives(3, {i64{1} << 62, 0, 1});
  EXPECT_THROW(plan_pool(lives, 1), Error);
}

}  // namespace
}  // namespace mckpt
