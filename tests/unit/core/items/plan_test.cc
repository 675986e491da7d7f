#include "core/items/plan.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/support/run_samples.h"

namespace mckpt::impl {
namespace plan_test {

Region region(i32 file, i64 offset, i64 items) { return {file, offset, items, 2, -1}; }

TEST(Plan, JoinsNeighboursAndReadsSourcesForwards) {
  Plan plan;
  i32 b = plan.add_source(region(1, 100, 12)), a = plan.add_source(region(0, 64, 12));
  i32 out = plan.add_destination(region(0, 0, 24));
  plan.add(out, move_of({b, 6, 6, {}, {}}, 6));
  plan.add(out, move_of({b, 0, 6, {}, {}}, 0));
  plan.add(out, move_of({a, 0, 12, {}, {}}, 12));
  plan.finish();
  ASSERT_EQ(plan.moves().size(), 2u);
  EXPECT_EQ(to_string(plan.moves()[0].move), "copy 1[0+12] -> [12+12]");
  EXPECT_EQ(plan.source_byte(plan.moves()[0]), 64);
  EXPECT_EQ(to_string(plan.moves()[1].move), "copy [0+12] -> [0+12]");
}

TEST(Plan, EveryDestinationItemIsWrittenExactlyOnce) {
  auto refusal = [](ItemRange first, ItemRange second) {
    Plan plan;
    i32 in = plan.add_source(region(0, 0, 20)), out = plan.add_destination(region(0, 0, 10));
    for (ItemRange r : {first, second}) plan.add(out, move_of({in, r.begin, r.items(), {}, {}}, r.begin));
    try {
      plan.finish();
      return std::string("ok");
    } catch (const Error& e) {
      return e.message();
    }
  };
  EXPECT_EQ(refusal({0, 5}, {5, 10}), "ok");
  EXPECT_EQ(refusal({0, 5}, {6, 10}), "item 5 of a piece of the result is written by no move");
  EXPECT_EQ(refusal({0, 6}, {5, 10}), "item 5 of a piece of the result is written twice");
  EXPECT_EQ(refusal({0, 5}, {5, 9}), "item 9 of a piece of the result is written by no move");
}

TEST(Plan, MovesThatLeaveTheirRegionAreRefused) {
  Plan plan;
  i32 in = plan.add_source(region(0, 0, 4)), out = plan.add_destination(region(0, 0, 4));
  EXPECT_THROW(plan.add(out, move_of({in, 0, 5, {}, {}}, 0)), Error);
  EXPECT_THROW(plan.add(out, move_of({in, 0, 4, {}, {}}, 1)), Error);
  EXPECT_THROW(plan.add_source({0, -1, 4, 2, -1}), Error);
  EXPECT_THROW(plan.add_source({0, INT64_MAX - 3, 4, 2, -1}), Error);
}

// Two random layouts of one tensor: every plan from one to the other carries every value to its place.
TEST(Plan, ReshardsArbitraryCuts) {
  std::mt19937 random(9);
  auto upto = [&](i64 n) { return std::uniform_int_distribution<i64>(0, n)(random); };
  for (int n = 0; n < 1500; n++) {
    i64 rows = 1 + upto(8), columns = 1 + upto(6), items = rows * columns;
    auto layout = [&] {  // columns split in two, each part cut once
      std::vector<ItemRun> parts;
      i64 at = upto(columns);
      for (ItemRange c : {ItemRange{0, at}, ItemRange{at, columns}}) {
        if (c.empty()) continue;
        ItemRun whole{0, c.begin, c.items(), {columns, rows}, {}};
        i64 middle = upto(whole.items());
        cut(whole, {0, middle}, parts);
        cut(whole, {middle, whole.items()}, parts);
      }
      return parts;
    };
    std::vector<ItemRun> from = layout(), to = layout();
    Plan plan;
    for (const ItemRun& f : from) plan.add_source(region(0, 0, f.items()));
    for (const ItemRun& t : to) {
      i32 out = plan.add_destination(region(0, 0, t.items()));
      for (std::size_t f = 0; f < from.size(); f++) {
        std::vector<Move> moves;
        overlap(from[f], t, moves);
        for (Move& m : moves) m.slot = static_cast<i32>(f), plan.add(out, m);
      }
    }
    plan.finish();
    i64 copied = 0;
    for (const PlannedMove& p : plan.moves()) copied += p.move.items();
    ASSERT_EQ(copied, items);
    for (const PlannedMove& p : plan.moves()) {
      const ItemRun &f = from[static_cast<std::size_t>(p.move.slot)],
                    &t = to[static_cast<std::size_t>(p.destination)];
      std::vector<i64> source = items_in_order(p.move.source()),
                       destination = items_in_order(p.move.destination());
      for (std::size_t i = 0; i < source.size(); i++) ASSERT_EQ(f.at(source[i]), t.at(destination[i]));
    }
  }
}

}  // namespace plan_test
}  // namespace mckpt::impl
