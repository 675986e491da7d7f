#include "core/items/box_cover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

namespace mckpt::impl {
namespace box_cover_test {

using Kind = BoxFault::Kind;

struct Box {
  std::vector<i64> offsets, sizes;
};

std::vector<BoxFault> faults_of(const std::vector<i64>& extent, const std::vector<Box>& boxes,
                                std::size_t most = 8) {
  std::vector<i64> offsets, sizes;
  for (const Box& b : boxes) {
    offsets.insert(offsets.end(), b.offsets.begin(), b.offsets.end());
    sizes.insert(sizes.end(), b.sizes.begin(), b.sizes.end());
  }
  return cover_faults(extent, offsets, sizes, static_cast<i64>(boxes.size()), most);
}

std::string dump(const std::vector<BoxFault>& faults) {
  std::string out;
  for (const BoxFault& f : faults) out += to_string(f) + "\n";
  return out;
}

TEST(BoxCover, AcceptsWhatTilesAndNamesWhatDoesNot) {
  struct Case {
    const char* name;
    std::vector<i64> extent;
    std::vector<Box> boxes;
    const char* expected;
  };
  const Case cases[] = {
      {"whole", {8, 4}, {{{0, 0}, {8, 4}}}, ""},
      {"rows in any order", {8, 4}, {{{3, 0}, {5, 4}}, {{0, 0}, {3, 4}}}, ""},
      {"grid", {4, 4}, {{{0, 0}, {2, 2}}, {{0, 2}, {2, 2}}, {{2, 0}, {2, 2}}, {{2, 2}, {2, 2}}}, ""},
      {"pinwheel",
       {3, 3},
       {{{0, 0}, {1, 2}}, {{0, 2}, {2, 1}}, {{2, 1}, {1, 2}}, {{1, 0}, {2, 1}}, {{1, 1}, {1, 1}}},
       ""},
      {"empty box at the far edge", {8, 4}, {{{0, 0}, {8, 4}}, {{8, 0}, {0, 4}}}, ""},
      {"empty box inside", {8, 4}, {{{0, 0}, {8, 4}}, {{3, 0}, {0, 4}}}, ""},
      {"scalar", {}, {{{}, {}}}, ""},
      {"empty tensor, no box", {0, 4}, {}, ""},
      {"empty tensor, empty box", {0, 4}, {{{0, 0}, {0, 4}}}, ""},
      {"scalar without a box", {}, {}, "a hole: no chunk covers offsets [], sizes []\n"},
      {"scalar twice", {}, {{{}, {}}, {{}, {}}}, "chunks 0 and 1 overlap: offsets [], sizes []\n"},
      {"no box", {8, 4}, {}, "a hole: no chunk covers offsets [0, 0], sizes [8, 4]\n"},
      {"hole between rows",
       {8, 4},
       {{{0, 0}, {4, 4}}, {{6, 0}, {2, 4}}},
       "a hole: no chunk covers offsets [4, 0], sizes [2, 4]\n"},
      {"hole at the end", {8}, {{{0}, {7}}}, "a hole: no chunk covers offsets [7], sizes [1]\n"},
      {"hole in the middle, cut apart and joined",
       {4, 4},
       {{{0, 0}, {1, 4}},
        {{3, 0}, {1, 4}},
        {{1, 0}, {1, 1}},
        {{2, 0}, {1, 1}},
        {{1, 3}, {1, 1}},
        {{2, 3}, {1, 1}}},
       "a hole: no chunk covers offsets [1, 1], sizes [2, 2]\n"},
      {"overlapping rows",
       {8, 4},
       {{{0, 0}, {5, 4}}, {{3, 0}, {5, 4}}},
       "chunks 0 and 1 overlap: offsets [3, 0], sizes [2, 4]\n"},
      {"a row inside another",
       {8},
       {{{0}, {8}}, {{2}, {3}}, {{5}, {1}}},
       "chunks 0 and 1 overlap: offsets [2], sizes [3]\n"},
      {"the same box twice",
       {8, 4},
       {{{0, 0}, {8, 4}}, {{0, 0}, {8, 4}}},
       "chunks 0 and 1 overlap: offsets [0, 0], sizes [8, 4]\n"},
      {"overlap and hole of one size",
       {8},
       {{{0}, {5}}, {{3}, {3}}},
       "chunks 0 and 1 overlap: offsets [3], sizes [2]\na hole: no chunk covers offsets [6], sizes [2]\n"},
      {"outside",
       {8, 4},
       {{{0, 0}, {4, 4}}, {{4, 0}, {5, 4}}},
       "chunk 1 reaches outside the tensor: offsets [4, 0], sizes [5, 4]\n"},
      {"negative offset",
       {8},
       {{{-1}, {9}}},
       "chunk 0 reaches outside the tensor: offsets [-1], sizes [9]\n"},
      {"negative size",
       {8},
       {{{0}, {8}}, {{0}, {-8}}},
       "chunk 1 reaches outside the tensor: offsets [0], sizes [-8]\n"},
      {"empty box beyond the far edge",
       {8},
       {{{0}, {8}}, {{9}, {0}}},
       "chunk 1 reaches outside the tensor: offsets [9], sizes [0]\n"},
      {"an end that wraps",
       {8},
       {{{0}, {8}}, {{4}, {INT64_MAX}}},
       "chunk 1 reaches outside the tensor: offsets [4], sizes [9223372036854775807]\nchunks 0 and 1 "
       "overlap: offsets [4], sizes [4]\n"},
  };
  for (const Case& c : cases) EXPECT_EQ(dump(faults_of(c.extent, c.boxes)), c.expected) << c.name;
}

// The number of boxes over every item of the tensor, one by one.
std::vector<int> counts_by_item(const std::vector<i64>& extent, const std::vector<Box>& boxes) {
  i64 items = 1;
  for (i64 n : extent) items *= n;
  std::vector<int> counts(static_cast<std::size_t>(items));
  for (i64 i = 0; i < items; i++) {
    std::vector<i64> at(extent.size());
    i64 rest = i;
    for (std::size_t d = extent.size(); d-- > 0; rest /= extent[d]) at[d] = rest % extent[d];
    for (const Box& b : boxes) {
      bool in = true;
      for (std::size_t d = 0; d < extent.size(); d++)
        in &= at[d] >= b.offsets[d] && at[d] < b.offsets[d] + b.sizes[d];
      counts[static_cast<std::size_t>(i)] += in;
    }
  }
  return counts;
}

// Every hole named is one, every overlap named is one, and silence means that each item is covered once.
void expect_truth(const std::vector<i64>& extent, const std::vector<Box>& boxes) {
  std::vector<BoxFault> faults = faults_of(extent, boxes, 1000);
  std::vector<int> counts = counts_by_item(extent, boxes);
  bool tiles = std::all_of(counts.begin(), counts.end(), [](int n) { return n == 1; });
  std::string said = dump(faults);
  ASSERT_EQ(tiles, faults.empty()) << said;
  bool has_hole = std::count(counts.begin(), counts.end(), 0) > 0, says_hole = false, says_overlap = false;
  for (const BoxFault& f : faults) {
    ASSERT_TRUE(f.kind == Kind::kHole || f.kind == Kind::kOverlap) << said;
    says_hole |= f.kind == Kind::kHole;
    says_overlap |= f.kind == Kind::kOverlap;
    std::vector<int> named = counts_by_item(extent, {{f.offsets, f.sizes}});
    ASSERT_GT(std::count(named.begin(), named.end(), 1), 0) << said;
    for (std::size_t i = 0; i < counts.size(); i++)
      if (named[i]) {
        ASSERT_TRUE(f.kind == Kind::kHole ? counts[i] == 0 : counts[i] >= 2) << said;
      }
  }
  ASSERT_EQ(has_hole, says_hole) << said;
  ASSERT_EQ(*std::max_element(counts.begin(), counts.end()) > 1, says_overlap) << said;
}

TEST(BoxCover, AgreesWithCountingItemsForAllPairsAndTriplesOfBoxes) {
  // All boxes with at least one item in a 3x2 tensor: 18; all lists of one, two and three of them.
  std::vector<Box> all;
  for (i64 a = 0; a < 3; a++)
    for (i64 b = 0; b < 2; b++)
      for (i64 n = 1; a + n <= 3; n++)
        for (i64 m = 1; b + m <= 2; m++) all.push_back({{a, b}, {n, m}});
  ASSERT_EQ(all.size(), 18u);
  for (const Box& a : all) {
    expect_truth({3, 2}, {a});
    for (const Box& b : all) {
      expect_truth({3, 2}, {a, b});
      for (const Box& c : all) expect_truth({3, 2}, {a, b, c});
    }
    if (HasFatalFailure()) return;
  }
}

// Cuts a box in two at random, again and again; with `twist`, sometimes into the five boxes of a pinwheel,
// which no straight cut divides.
void cut_at_random(std::mt19937& random, Box box, int depth, bool twist, std::vector<Box>& out) {
  auto pick = [&](i64 low, i64 high) { return std::uniform_int_distribution<i64>(low, high)(random); };
  std::size_t d = static_cast<std::size_t>(pick(0, static_cast<i64>(box.sizes.size()) - 1));
  std::size_t e = (d + 1) % box.sizes.size();
  if (depth == 0 || box.sizes[d] < 2) return out.push_back(std::move(box));
  auto piece = [&](i64 a0, i64 a1, i64 b0, i64 b1) {
    Box p = box;
    p.offsets[d] += a0, p.sizes[d] = a1 - a0;
    p.offsets[e] += b0, p.sizes[e] = b1 - b0;
    cut_at_random(random, p, depth - 1, twist, out);
  };
  i64 n = box.sizes[d], m = box.sizes[e];
  if (twist && d != e && n >= 3 && m >= 3 && pick(0, 1)) {
    i64 x = pick(1, n - 2), y = pick(x + 1, n - 1), u = pick(1, m - 2), v = pick(u + 1, m - 1);
    piece(0, x, 0, v), piece(0, y, v, m), piece(y, n, u, m), piece(x, n, 0, u), piece(x, y, u, v);
    return;
  }
  i64 cut = pick(1, n - 1);
  Box low = box, high = box;
  low.sizes[d] = cut;
  high.offsets[d] += cut, high.sizes[d] -= cut;
  cut_at_random(random, low, depth - 1, twist, out);
  cut_at_random(random, high, depth - 1, twist, out);
}

TEST(BoxCover, AgreesWithCountingItemsForRandomTilingsAndTheirDamage) {
  std::mt19937 random(7);
  const std::vector<std::vector<i64>> extents = {{12}, {7, 9}, {5, 4, 6}, {3, 4, 3, 5}, {1, 6, 1, 7}};
  for (int round = 0; round < 400; round++) {
    const std::vector<i64>& extent = extents[static_cast<std::size_t>(round) % extents.size()];
    std::vector<Box> boxes;
    cut_at_random(random, {std::vector<i64>(extent.size(), 0), extent}, 5, true, boxes);
    std::shuffle(boxes.begin(), boxes.end(), random);
    ASSERT_EQ(dump(faults_of(extent, boxes)), "");
    std::vector<Box> damaged = boxes;
    damaged.pop_back();
    expect_truth(extent, damaged);
    if (damaged.empty()) continue;
    Box& moved = damaged[random() % damaged.size()];
    std::size_t d = random() % extent.size();
    if (moved.offsets[d] > 0) moved.offsets[d]--;
    expect_truth(extent, damaged);
    damaged.push_back(boxes[random() % boxes.size()]);
    expect_truth(extent, damaged);
    if (HasFatalFailure()) return;
  }
}

std::vector<Box> grid(i64 rows, i64 columns) {
  std::vector<Box> boxes;
  for (i64 r = 0; r < rows; r++)
    for (i64 c = 0; c < columns; c++) boxes.push_back({{r * 3, c * 5}, {3, 5}});
  return boxes;
}

// Quadratic work over 200,000 boxes would take longer than a test may.
TEST(BoxCover, StaysFastForManyBoxes) {
  EXPECT_EQ(faults_of({600000, 5}, grid(200000, 1)).size(), 0u);
  EXPECT_EQ(faults_of({1200, 2500}, grid(400, 500)).size(), 0u);
  std::vector<Box> holed = grid(400, 500);
  holed.erase(holed.begin() + 77777);
  EXPECT_EQ(faults_of({1200, 2500}, holed).size(), 1u);
  std::vector<Box> equal(200000, Box{{0, 0}, {10, 10}});
  EXPECT_EQ(faults_of({10, 10}, equal).size(), 1u);
  std::vector<Box> nested;
  for (i64 i = 0; i < 100000; i++) nested.push_back({{i, i}, {400000 - 2 * i, 400000 - 2 * i}});
  EXPECT_EQ(faults_of({400000, 400000}, nested).size(), 1u);
}

TEST(BoxCover, ProvesLargeIrregularTilings) {
  std::mt19937 random(11);
  for (const std::vector<i64>& extent : {std::vector<i64>{20000, 30000}, {900, 800, 700}, {90, 80, 70, 60}}) {
    std::vector<Box> boxes;
    cut_at_random(random, {std::vector<i64>(extent.size(), 0), extent}, 11, true, boxes);
    std::shuffle(boxes.begin(), boxes.end(), random);
    EXPECT_EQ(faults_of(extent, boxes).size(), 0u) << boxes.size();
  }
}

// Rods along three axes with cubes between them: every plane cuts rods. Such a proof may be given up, but
// neither takes for ever nor finds fault with a tiling.
TEST(BoxCover, EndsInBoundedTimeOnBoxesMadeToBeHard) {
  std::vector<Box> boxes;
  constexpr i64 n = 40;
  for (i64 i = 0; i < n; i++)
    for (i64 j = 0; j < n; j++) {
      boxes.push_back({{0, 2 * i, 2 * j}, {2 * n, 1, 1}});
      boxes.push_back({{2 * i + 1, 0, 2 * j + 1}, {1, 2 * n, 1}});
      boxes.push_back({{2 * i, 2 * j + 1, 0}, {1, 1, 2 * n}});
      for (i64 k = 0; k < n; k++) {
        boxes.push_back({{2 * i, 2 * j, 2 * k + 1}, {1, 1, 1}});
        boxes.push_back({{2 * i + 1, 2 * j + 1, 2 * k}, {1, 1, 1}});
      }
    }
  for (const BoxFault& f : faults_of({2 * n, 2 * n, 2 * n}, boxes))
    EXPECT_EQ(f.kind, Kind::kIrregular) << to_string(f);
}

TEST(BoxCover, SaysSoWhenItGivesUp) {
  std::mt19937 random(3);
  std::vector<Box> boxes;
  cut_at_random(random, {{0, 0, 0}, {30, 30, 30}}, 9, true, boxes);
  std::vector<i64> offsets, sizes;
  for (const Box& b : boxes) {
    offsets.insert(offsets.end(), b.offsets.begin(), b.offsets.end());
    sizes.insert(sizes.end(), b.sizes.begin(), b.sizes.end());
  }
  std::vector<i64> extent = {30, 30, 30};
  auto count = static_cast<i64>(boxes.size());
  EXPECT_TRUE(cover_faults(extent, offsets, sizes, count).empty());
  std::vector<BoxFault> faults = cover_faults(extent, offsets, sizes, count, 8, 1);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].kind, Kind::kIrregular);
}

}  // namespace box_cover_test
}  // namespace mckpt::impl
