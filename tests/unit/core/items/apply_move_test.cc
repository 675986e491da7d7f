#include "core/items/apply_move.h"

#include <gtest/gtest.h>

#include <numeric>

#include "core/items/move.h"
#include "core/items/transpose.h"
#include "tests/support/run_samples.h"

namespace mckpt::impl {
namespace apply_move_test {

std::vector<u8> numbered(i64 items, i64 item_bytes) {
  std::vector<u8> bytes(static_cast<std::size_t>(items * item_bytes));
  std::mt19937 random(static_cast<unsigned>(items));
  for (u8& b : bytes) b = static_cast<u8>(random());
  return bytes;
}

TEST(ApplyMove, PutsEveryItemWhereTheMoveSaysAndTouchesNothingElse) {
  std::mt19937 random(11);
  for (int n = 0; n < 4000; n++) {
    i64 item = i64{1} << n % 5;
    ItemRun run = random_run(random, 200);
    Move move = move_of(run, 3);
    if (n % 3 == 0) std::swap(move.inner, move.outer);
    std::vector<u8> from = numbered(201, item), to(static_cast<std::size_t>((run.items() + 8) * item), 0xEE),
                    expected = to;
    std::vector<i64> source = items_in_order(move.source()), destination = items_in_order(move.destination());
    for (std::size_t i = 0; i < source.size(); i++)
      std::copy_n(from.begin() + source[i] * item, item, expected.begin() + (destination[i] - 1) * item);
    apply_move(move, item, {from.data(), 0}, {to.data(), 1});
    ASSERT_EQ(to, expected) << to_string(move) << " of " << item << " bytes";
  }
}

TEST(ApplyMove, ZeroesWhatIsPadding) {
  Move pad;
  pad.kind = MoveKind::kZero;
  pad.to = 2, pad.length = 3;
  std::vector<u8> to(12, 0xEE);
  apply_move(pad, 2, {}, {to.data(), 0});
  EXPECT_EQ(to, (std::vector<u8>{0xEE, 0xEE, 0xEE, 0xEE, 0, 0, 0, 0, 0, 0, 0xEE, 0xEE}));
}

// One byte of one item changed, and where the move has it.
TEST(ApplyMove, FindsTheFirstItemThatIsNotTheOneItWouldCopy) {
  std::mt19937 random(12);
  for (int n = 0; n < 1000; n++) {
    i64 item = i64{1} << n % 5;
    Move move = move_of(random_run(random, 200), 3);
    if (move.items() == 0) continue;
    std::vector<u8> from = numbered(201, item), to(static_cast<std::size_t>((move.items() + 8) * item), 0xEE);
    apply_move(move, item, {from.data(), 0}, {to.data(), 1});
    EXPECT_EQ(first_unlike(move, item, {from.data(), 0}, {to.data(), 1}), -1);
    std::vector<i64> destination = items_in_order(move.destination());
    i64 changed = destination[random() % destination.size()];
    to[static_cast<std::size_t>((changed - 1) * item + static_cast<i64>(random()) % item)] ^= 16;
    ASSERT_EQ(first_unlike(move, item, {from.data(), 0}, {to.data(), 1}), changed) << to_string(move);
  }
}

TEST(Transpose, AgreesWithItemByItemForAllSizesAroundTheTiles) {
  for (i64 item : {1, 2, 4, 8, 16})
    for (i64 from_step : {1, 2, 3})
      for (i64 to_step : {1, 2})
        for (i64 rows : {1, 7, 16, 31, 32, 33, 67})
          for (i64 columns : {1, 5, 8, 9, 24, 35}) {
            TransposeShape s{rows, columns, columns * from_step + 1, from_step, rows * to_step + 3, to_step};
            // Exactly as much memory as the walk needs, at an odd address: a load too many is an error under
            // ASan.
            i64 from_items = (rows - 1) * s.from_row + (columns - 1) * from_step + 1;
            std::vector<u8> from = numbered(from_items, item);
            from.insert(from.begin(), 0);
            std::vector<u8> to(
                static_cast<std::size_t>(((columns - 1) * s.to_row + (rows - 1) * to_step + 1) * item), 0xEE);
            std::vector<u8> expected = to;
            for (i64 r = 0; r < rows; r++)
              for (i64 c = 0; c < columns; c++)
                std::copy_n(from.begin() + 1 + (r * s.from_row + c * from_step) * item, item,
                            expected.begin() + (c * s.to_row + r * to_step) * item);
            transpose(s, item, from.data() + 1, to.data());
            ASSERT_EQ(to, expected) << rows << "x" << columns << " of " << item << " bytes, steps "
                                    << from_step << " " << to_step;
          }
}

}  // namespace apply_move_test
}  // namespace mckpt::impl
