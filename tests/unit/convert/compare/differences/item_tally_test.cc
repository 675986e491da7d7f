#include "convert/compare/differences/item_tally.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace mckpt::impl
