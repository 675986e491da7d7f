#include "convert/compare/differences/item_tally.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "convert/keys/stored_chunks.h"
#include "io/verify/verify.h"
#include "tests/support/table_store.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace {

// Chunks of float32 in file 0, one behind the other.
class SomeBoxes final : public ChunkList {
 public:
  struct Entry {
    i32 key;
    std::vector<i64> offsets, sizes;
    i64 at;
  };
  std::vector<Entry> entries;

  i64 size() const override { return std::ssize(entries); }
  i32 key(i64 c) const override { return of(c).key; }
  Box box(i64 c) const override { return {of(c).offsets, of(c).sizes}; }
  std::span<const i64> dims(i64 c) const override { return of(c).sizes; }
  DType dtype(i64) const override { return DType::kF32; }
  std::string name(i64) const override { return "t"; }
  Place place(i64 c) const override { return {0, of(c).at, DType::kF32}; }

 private:
  const Entry& of(i64 c) const { return entries[static_cast<std::size_t>(c)]; }
};

TEST(ItemTally, CountsItemsByTheirPlaceInTheTensor) {
  // Byte 2: rows 2 and 3 of tensor 0; byte 34: its rows 0 and 1; byte 66: tensor 1.
  SomeBoxes boxes;
  boxes.entries = {{0, {2, 0}, {2, 4}, 2}, {0, {0, 0}, {2, 4}, 34}, {1, {0}, {2}, 66}};
  std::vector<float> values(18);
  for (std::size_t i = 0; i < values.size(); i++) values[i] = static_cast<float>(i);
  std::string bytes(2, '?');
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  TempFolder folder;
  folder.put("f", bytes);
  TableStore store{folder.path()};
  store.add_file("f", std::ssize(bytes));
  ItemTally tally(store, boxes);

  std::vector<float> others = values;
  others[1] += 8;     // [2, 1]
  others[7] -= 0.5f;  // [3, 3]
  others[14] += 2;    // [1, 2]
  std::span<const u8> all(reinterpret_cast<const u8*>(others.data()), others.size() * sizeof(float));
  // Two writes, each over the border of two chunks.
  tally.write(0, 2, all.first(40));
  tally.write(0, 42, all.subspan(40));

  ASSERT_EQ(tally.counts().size(), 2u);
  EXPECT_EQ(tally.counts().at(1).items, 0);
  const ItemTally::Count& c = tally.counts().at(0);
  EXPECT_EQ(c.items, 3);
  EXPECT_EQ(c.index, (std::vector<i64>{1, 2}));
  EXPECT_EQ(c.offset, 2 + 14 * 4);
  EXPECT_EQ(c.largest(), 8.0);
  EXPECT_EQ(difference_text({.at = "[1, 2]",
                             .expected = c.expected,
                             .found = c.found,
                             .items = c.items,
                             .distance = c.distance}),
            "differs at [1, 2]: expected 16, found 14; 3 items differ, by 8 at most");
}

// Sums of floats: 1e16 + 1 + 1 is 1e16 + 2 or 1e16, as one adds them. Writes that come twice, as those beside
// damage do, count once.
TEST(ItemTally, SumsAreTheSameInAnyOrderOfWrites) {
  SomeBoxes boxes;
  boxes.entries = {{0, {0}, {3}, 0}, {1, {0}, {1}, 12}};
  const std::vector<float> values = {0, 0, 0, 0}, others = {1e8f, 1, 1, 1};
  TempFolder folder;
  folder.put("f", std::string(reinterpret_cast<const char*>(values.data()), 16));
  TableStore store{folder.path()};
  store.add_file("f", 16);
  std::span<const u8> all(reinterpret_cast<const u8*>(others.data()), 16);
  std::vector<i64> order = {0, 1, 2, 3};
  std::set<long double> sums;
  do {
    ItemTally tally(store, boxes);
    for (i64 i : order) {
      tally.write(0, 4 * i, all.subspan(static_cast<std::size_t>(4 * i), 4));
      if (i == order[1]) tally.write(0, 4 * i, all.subspan(static_cast<std::size_t>(4 * i), 4));
    }
    const ItemTally::Count& c = tally.counts().at(0);
    EXPECT_EQ(c.items, 3);
    EXPECT_EQ(c.index, (std::vector<i64>{0}));
    EXPECT_EQ(tally.counts().at(1).items, 1);
    sums.insert(c.distance->squares_b);
  } while (std::ranges::next_permutation(order).found);
  EXPECT_EQ(sums.size(), 1u);
}

}  // namespace
}  // namespace mckpt::impl
