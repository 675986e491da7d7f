// The two rules by which the items of ranks go into the parts of a fused parameter: numbers of the run behind
// PR 4423, and a walk over all items.
#include "core/fsdp/fused_cut.h"

#include <gtest/gtest.h>

namespace mckpt::impl {
namespace fused_cut_test {

// fc1 [10, 4] with its bias on 4 ranks.
FusedCut gated() {
  return {.parts = {{"_w", {0, 20}}, {"_v", {20, 40}}},
          .shares = {{0, {0, 16}}, {1, {16, 32}}, {2, {32, 40}}, {3, {0, 0}}}};
}

TEST(FusedCut, HasTheHalvesOfTheParameterOnEachRank) {
  const FusedCut cut = gated();
  const i64 want[4][2] = {{16, 0}, {4, 12}, {0, 8}, {0, 0}};
  for (int rank = 0; rank < 4; rank++)
    for (int part = 0; part < 2; part++)
      EXPECT_EQ(part_of_share(cut.parts[part], cut.shares[rank]).items(), want[rank][part]) << rank << part;
}

TEST(FusedCut, ByLocalCountsGivesRowsOfWToV) {
  const FusedCut cut = gated();
  EXPECT_EQ(part_by_local_count(cut, cut.parts[0], cut.shares[0]), (ItemRange{0, 8}));
  EXPECT_EQ(part_by_local_count(cut, cut.parts[1], cut.shares[0]), (ItemRange{8, 16}));
  for (int part = 0; part < 2; part++)  // rank 1 writes nothing
    EXPECT_TRUE(part_by_local_count(cut, cut.parts[part], cut.shares[1]).empty());
  const LocalCountLoss first = loss_by_local_count(cut, cut.shares[0]),
                       second = loss_by_local_count(cut, cut.shares[1]);
  EXPECT_EQ(first.right, 8);
  EXPECT_EQ(first.wrong, 8);
  EXPECT_EQ(first.lost, 0);
  EXPECT_EQ(second.right + second.wrong, 0);
  EXPECT_EQ(second.lost, 16);
}

// in_proj [28, 4] of a gated delta net on 4 ranks, as a real run saved it.
TEST(FusedCut, HasTheSixPartsOfAGatedDeltaNet) {
  FusedCut cut;
  const i64 rows[] = {6, 6, 6, 6, 2, 2};
  i64 at = 0;
  for (i64 r : rows) cut.parts.push_back({"", {at, at + 4 * r}}), at += 4 * r;
  for (i64 rank = 0; rank < 4; rank++) cut.shares.push_back({rank, {28 * rank, 28 * rank + 28}});
  const i64 want[4][6] = {{6, 1, 0, 0, 0, 0}, {0, 5, 2, 0, 0, 0}, {0, 0, 4, 3, 0, 0}, {0, 0, 0, 3, 2, 2}};
  for (int rank = 0; rank < 4; rank++)
    for (int part = 0; part < 6; part++)
      EXPECT_EQ(part_of_share(cut.parts[part], cut.shares[rank]).items(), 4 * want[rank][part])
          << rank << part;
}

TEST(FusedCut, OfOneRankLosesNothing) {
  const FusedCut cut{.parts = {{".query", {0, 24}}, {".key", {24, 48}}, {".beta", {48, 50}}},
                     .shares = {{0, {0, 50}}}};
  const LocalCountLoss loss = loss_by_local_count(cut, cut.shares[0]);
  EXPECT_EQ(loss.right, 50);
  EXPECT_EQ(loss.wrong + loss.lost, 0);
}

// Item i of a share is item begin + i of the parameter; the rule asks in which part i would be if the parameter
// had as many items as the share.
TEST(FusedCut, ByLocalCountsIsWhatAWalkFinds) {
  const FusedCut cut{.parts = {{"a", {0, 6}}, {"b", {6, 18}}, {"c", {18, 20}}}};
  for (i64 begin = 0; begin < 20; begin++)
    for (i64 end = begin; end <= 20; end++) {
      const FusedShare share{0, {begin, end}};
      LocalCountLoss want;
      for (i64 item = begin; item < end; item++) {
        int of_rule = -1, own = -1;
        for (int p = 0; p < 3; p++) {
          const ItemRange r = cut.parts[p].items;
          if (r.begin * (end - begin) / 20 <= item && item < r.end * (end - begin) / 20) of_rule = p;
          if (r.begin <= item && item < r.end) own = p;
        }
        (of_rule < 0 ? want.lost : of_rule == own ? want.right : want.wrong)++;
      }
      const LocalCountLoss loss = loss_by_local_count(cut, share);
      EXPECT_EQ(loss.right, want.right) << begin << " " << end;
      EXPECT_EQ(loss.wrong, want.wrong) << begin << " " << end;
      EXPECT_EQ(loss.lost, want.lost) << begin << " " << end;
    }
}

TEST(FusedCut, CountsParametersOfAnySize) {
  constexpr i64 kItems = i64{1} << 40;
  const FusedCut cut{.parts = {{"a", {0, kItems / 2}}, {"b", {kItems / 2, kItems}}}};
  const FusedShare share{0, {0, kItems / 2 + 2}};
  EXPECT_EQ(part_by_local_count(cut, cut.parts[0], share).end, kItems / 4 + 1);
}

}  // namespace fused_cut_test
}  // namespace mckpt::impl
