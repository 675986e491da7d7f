// The answer of `layout` to a packing that cuts a row: the message, the advice, and the limit of JSON.
#include "tools/answers/layout/shapes.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/fsdp/flat_buffer.h"
#include "core/fsdp/strategy.h"
#include "tests/support/throws.h"
#include "tools/render/output.h"

namespace mckpt::impl {
namespace shapes_test {

// [2, 6] and [4, 5] over two ranks of v1: shard 1 begins at item 18 of the second one, in its row 3.
PackedShapes cut_in_a_row(Strategy strategy = Strategy::kOptimGradsParams) {
  PackedShapes out;
  out.shapes = {Shape({2, 6}), Shape({4, 5})};
  out.packing.ranks = 2, out.packing.strategy = strategy;
  out.buffer = pack(out.shapes, out.packing);
  out.cuts = row_cuts(out.buffer);
  return out;
}

TEST(LayoutAnswer, NamesTheRowThatIsCut) {
  EXPECT_EQ(cut_message({.parameter = 1, .item = 18, .shard = 1, .row = 3, .row_items = 5}, "parameter 1"),
            "the boundary of shards 0 and 1 is inside row 3 of parameter 1: item 18 is not a multiple of 5");
}

TEST(LayoutAnswer, AdvisesByStrategyAndRanks) {
  PackedShapes l = cut_in_a_row();
  EXPECT_NE(layout_advice(l).find("--engine v2"), std::string::npos) << layout_advice(l);
  EXPECT_EQ(layout_advice(cut_in_a_row(Strategy::kNoShard)),
            "nothing to do: under no_shard a real run saves every parameter whole");
}

TEST(LayoutAnswer, CountsItemsAndTheEndOfTheLast) {
  const PackedShapes l = cut_in_a_row();
  EXPECT_EQ(l.parameter_items(), 32);
  EXPECT_GE(l.last_item(), 32);
  EXPECT_FALSE(l.no_shard());
  EXPECT_TRUE(cut_in_a_row(Strategy::kNoShard).no_shard());
}

TEST(LayoutAnswer, RefusesJsonOfTooManyRanges) {
  refuse_too_many_ranges(i64{1} << 26, "x");
  const std::string told =
      thrown_by([] { refuse_too_many_ranges((i64{1} << 26) + 1, "9 parameters x 8 ranks"); });
  EXPECT_EQ(told.substr(0, 6), code_name(Code::kBadLayout));
  EXPECT_NE(told.find("9 parameters x 8 ranks"), std::string::npos) << told;
}

TEST(LayoutAnswer, OfAPackingWithACutIsANo) {
  const PackedShapes l = cut_in_a_row();
  ASSERT_FALSE(l.cuts.empty());
  Output out(GlobalFlags{.ascii = true});
  write_layout_text(out, l);
  const std::string text = std::exchange(out.buffer(), "");
  EXPECT_NE(text.find(code_name(Code::kRowUnaligned)), std::string::npos) << text;
  EXPECT_NE(text.find("parameter 1"), std::string::npos) << text;
  EXPECT_NE(text.find("help: "), std::string::npos) << text;
}

}  // namespace shapes_test
}  // namespace mckpt::impl
