#include "core/fsdp/flat_buffer.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/fsdp/first_fit.h"
#include "core/items/item_run.h"
#include "core/items/shape.h"
#include "tests/support/golden_json.h"

namespace mckpt::impl {
namespace flat_buffer_test {

using Ranges = std::vector<ItemRange>;

FlatBuffer v1(const std::vector<Shape>& shapes, i64 ranks, Strategy strategy = Strategy::kOptimGradsParams) {
  return pack(shapes, {Engine::kV1, strategy, ranks});
}

FlatBuffer v2(const std::vector<Shape>& shapes, i64 ranks) {
  return pack(shapes, {Engine::kV2, Strategy::kOptimGradsParams, ranks});
}

std::vector<i64> offsets(const FlatBuffer& b) {
  std::vector<i64> out;
  for (const PackedParameter& p : b.parameters) out.push_back(p.offset);
  return out;
}

Ranges ranges(const FlatBuffer& b, i64 p) {
  Ranges out;
  for (i64 s = 0; s < b.shards; s++) out.push_back(item_range(b, p, s));
  return out;
}

std::vector<Rows> rows(const FlatBuffer& b, i64 p, ItemRange piece) {
  std::vector<Rows> out;
  for (i64 s = 0; s < b.shards; s++) out.push_back(rows_on_shard(b, p, s, piece));
  return out;
}

void expect_size(const FlatBuffer& b, i64 chunk, i64 bucket, i64 shard) {
  EXPECT_EQ(b.chunk_items, chunk);
  EXPECT_EQ(b.bucket_items, bucket);
  EXPECT_EQ(b.shard_items, shard);
}

using I = std::vector<i64>;

TEST(FlatBuffer, CutsWeightAndBiasOverFourRanks) {
  FlatBuffer b = v1({{10, 4}, {10}}, 4);
  expect_size(b, 4, 64, 16);
  EXPECT_EQ(offsets(b), (I{0, 40}));
  EXPECT_EQ(ranges(b, 0), (Ranges{{0, 16}, {16, 32}, {32, 40}, {0, 0}}));
  EXPECT_EQ(ranges(b, 1), (Ranges{{0, 0}, {0, 0}, {0, 8}, {8, 10}}));
  EXPECT_TRUE(row_aligned(b));
}

TEST(FlatBuffer, SortsByRowSizeAndKeepsRegistrationOrderAmongEqualRows) {
  FlatBuffer b = v1({{8, 4}, {16, 4}, {4, 8}, {4}, {4}}, 4);
  EXPECT_EQ(b.order, (I{2, 0, 1, 3, 4}));
  expect_size(b, 8, 160, 40);
  EXPECT_EQ(offsets(b), (I{32, 64, 0, 128, 132}));
  EXPECT_EQ(ranges(b, 0), (Ranges{{0, 8}, {8, 32}, {0, 0}, {0, 0}}));
  EXPECT_EQ(ranges(b, 1), (Ranges{{0, 0}, {0, 16}, {16, 56}, {56, 64}}));
}

TEST(FlatBuffer, V2KeepsRegistrationOrder) {
  FlatBuffer b = v2({{8, 4}, {16, 4}, {4, 8}, {4}, {4}}, 4);
  EXPECT_EQ(b.order, (I{0, 1, 2, 3, 4}));
  EXPECT_EQ(offsets(b), (I{0, 32, 96, 128, 132}));
  EXPECT_EQ(b.bucket_items, 160);
}

TEST(FlatBuffer, PairsTwoRemaindersInOneChunkAndFillsTheRestWithFragments) {
  FlatBuffer b = v1({{2, 6}, {4, 4}, {4, 4}, {1, 2}, {1, 6}}, 5);
  EXPECT_EQ(b.order, (I{0, 4, 1, 2, 3}));
  expect_size(b, 12, 60, 12);
  EXPECT_EQ(offsets(b), (I{0, 12, 32, 28, 48}));
  EXPECT_EQ(ranges(b, 1), (Ranges{{0, 0}, {0, 12}, {12, 16}, {0, 0}, {0, 0}}));
  EXPECT_EQ(ranges(b, 2), (Ranges{{0, 0}, {0, 0}, {0, 4}, {4, 16}, {0, 0}}));
  EXPECT_EQ(ranges(b, 3), (Ranges{{0, 0}, {0, 0}, {0, 2}, {0, 0}, {0, 0}}));
  EXPECT_EQ(ranges(b, 4), (Ranges{{0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 6}}));
}

TEST(FlatBuffer, AlignsThePartnerToTheRightAndLeavesAHole) {
  FlatBuffer b = v1({{3, 6}, {4, 4}}, 2);
  expect_size(b, 12, 48, 24);
  EXPECT_EQ(offsets(b), (I{0, 20}));
  EXPECT_EQ(ranges(b, 1), (Ranges{{0, 4}, {4, 16}}));
}

TEST(FlatBuffer, DoesNotPairWhatDoesNotFit) {
  FlatBuffer b = v1({{3, 6}, {5, 4}, {2, 6}}, 2);
  EXPECT_EQ(b.order, (I{0, 2, 1}));
  EXPECT_EQ(offsets(b), (I{0, 36, 24}));
  EXPECT_EQ(b.bucket_items, 72);
}

TEST(FlatBuffer, TakesTheLeastCommonMultipleOfUnlikeRows) {
  FlatBuffer b = v1({{7, 6}, {9, 4}, {5}}, 3);
  expect_size(b, 12, 108, 36);
  EXPECT_EQ(offsets(b), (I{0, 48, 42}));
  EXPECT_EQ(ranges(b, 0), (Ranges{{0, 36}, {36, 42}, {0, 0}}));
  EXPECT_EQ(ranges(b, 1), (Ranges{{0, 0}, {0, 24}, {24, 36}}));
}

TEST(FlatBuffer, NoShardIsNotPadded) {
  FlatBuffer b = v1({{10, 4}, {10}}, 4, Strategy::kNoShard);
  expect_size(b, 4, 52, 13);
  EXPECT_EQ(unaligned_cut(b, 0), 13);
  EXPECT_EQ(unaligned_cut(b, 1), std::nullopt);
}

TEST(FlatBuffer, NoShardOfFewerItemsThanRanksHasEmptyVirtualShards) {
  FlatBuffer b = v1({{1, 2}}, 5, Strategy::kNoShard);
  expect_size(b, 2, 2, 0);
  EXPECT_EQ(ranges(b, 0), Ranges(5));
  EXPECT_TRUE(row_aligned(b));
}

TEST(FlatBuffer, AScalarIsOneItemUnderV1) {
  FlatBuffer b = v1({{}, {2, 3}}, 2);
  EXPECT_EQ(b.order, (I{1, 0}));
  EXPECT_EQ(offsets(b), (I{6, 0}));
  EXPECT_EQ(b.bucket_items, 12);
}

TEST(FlatBuffer, V1CanCutARowAndSaysWhere) {
  FlatBuffer b = v1({{2, 6}, {4, 5}}, 2);
  expect_size(b, 30, 60, 30);
  EXPECT_EQ(offsets(b), (I{0, 12}));
  EXPECT_FALSE(row_aligned(b));
  EXPECT_EQ(unaligned_cut(b, 0), std::nullopt);
  EXPECT_EQ(unaligned_cut(b, 1), 18);
  EXPECT_EQ(rows_on_shard(b, 0, 0), (Rows{0, 2}));
  try {
    rows_on_shard(b, 1, 1);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kRowUnaligned);
    EXPECT_EQ(e.expected(), "a multiple of 5 items");
    EXPECT_EQ(e.found(), "item 18");
  }
  EXPECT_TRUE(row_aligned(v2({{2, 6}, {4, 5}}, 2)));
}

// A cut that is between rows by chance does not excuse the next one.
TEST(FlatBuffer, LooksAtMoreThanTheFirstCut) {
  FlatBuffer b;
  b.parameters = {{12, 4, 0}};
  b.shards = 4;
  b.bucket_items = 8;
  b.shard_items = 2;
  EXPECT_EQ(unaligned_cut(b, 0), 2);
  b.parameters = {{12, 4, 2}};
  b.shard_items = 6;
  EXPECT_EQ(unaligned_cut(b, 0), 10);
  // Nothing is cut behind the last of the virtual shards.
  b.parameters = {{12, 2, 7}};
  b.shards = b.shard_items = 3;
  EXPECT_EQ(unaligned_cut(b, 0), std::nullopt);
}

TEST(FlatBuffer, TensorParallelLayerOfTwoByTwo) {
  FlatBuffer b = v1({{10, 4}, {4, 5}, {4}}, 2);
  expect_size(b, 20, 80, 40);
  EXPECT_EQ(offsets(b), (I{20, 0, 60}));
  EXPECT_EQ(rows(b, 0, {0, 40}), (std::vector<Rows>{{0, 5}, {5, 5}}));
  EXPECT_EQ(rows(b, 1, {0, 20}), (std::vector<Rows>{{0, 4}, {4, 0}}));
  EXPECT_EQ(rows(b, 2, {0, 4}), (std::vector<Rows>{{0, 0}, {0, 4}}));
}

TEST(FlatBuffer, AChunkWithoutRowsStandsWhereItWouldHaveBeen) {
  FlatBuffer b = v1({{10, 4}, {10}}, 4);
  EXPECT_EQ(rows(b, 0, {0, 40}), (std::vector<Rows>{{0, 4}, {4, 4}, {8, 2}, {10, 0}}));
  EXPECT_EQ(rows(b, 1, {0, 10}), (std::vector<Rows>{{0, 0}, {0, 0}, {0, 8}, {8, 2}}));
}

TEST(FlatBuffer, HalvesOfAFusedTensorAreCutInItsOwnItems) {
  FlatBuffer b = v1({{10, 4}, {10}}, 4);
  EXPECT_EQ(rows(b, 0, {0, 20}), (std::vector<Rows>{{0, 4}, {4, 1}, {5, 0}, {5, 0}}));
  EXPECT_EQ(rows(b, 0, {20, 40}), (std::vector<Rows>{{0, 0}, {0, 3}, {3, 2}, {5, 0}}));
  EXPECT_EQ(rows(b, 1, {0, 5}), (std::vector<Rows>{{0, 0}, {0, 0}, {0, 5}, {5, 0}}));
  EXPECT_EQ(rows(b, 1, {5, 10}), (std::vector<Rows>{{0, 0}, {0, 0}, {0, 3}, {3, 2}}));
}

// The bucket of the first test over two instances of two ranks.
TEST(FlatBuffer, HsdpReplicatePacksForTheRanksOfOneInstance) {
  FlatBuffer b = pack(std::vector<Shape>{{10, 4}, {10}}, {.ranks = 4, .hsdp = 2});
  expect_size(b, 4, 56, 28);
  EXPECT_EQ(b.shards, 2);
  FlatBuffer plain = v1({{10, 4}, {10}}, 2);
  EXPECT_EQ(plain.bucket_items, b.bucket_items);
  EXPECT_EQ(ranges(plain, 0), ranges(b, 0));
}

TEST(FlatBuffer, HsdpShardCutsTheInnerDimensionFirst) {
  FlatBuffer b = pack(std::vector<Shape>{{10, 4}, {10}}, {.ranks = 4, .hsdp = 2, .outer = HsdpOuter::kShard});
  expect_size(b, 4, 64, 16);
  EXPECT_EQ(b.shards, 4);
  Ranges of_rank;  // (outer, inner) = (0,0) (0,1) (1,0) (1,1)
  for (i64 r = 0; r < 4; r++) of_rank.push_back(item_range(b, 0, place_of(r, 4, 2, HsdpOuter::kShard).shard));
  EXPECT_EQ(of_rank, (Ranges{{0, 16}, {32, 40}, {16, 32}, {0, 0}}));
}

TEST(FlatBuffer, V2PadsForTheWholeMeshThoughReplicasHoldTheSame) {
  FlatBuffer b = pack(std::vector<Shape>{{10, 4}}, {.engine = Engine::kV2, .ranks = 4, .hsdp = 2});
  expect_size(b, 4, 48, 24);
  EXPECT_EQ(b.shards, 2);
}

TEST(FlatBuffer, PacksAMillionRanksWithoutListingThem) {
  FlatBuffer b = v1({{1'000'000, 1000}, {1000}}, 1 << 20);
  EXPECT_EQ(b.shard_items, 1000);
  EXPECT_EQ(item_range(b, 0, 999'999), (ItemRange{999'999'000, 1'000'000'000}));
  EXPECT_EQ(item_range(b, 1, 1'000'000), (ItemRange{0, 1000}));
  EXPECT_EQ(rows_on_shard(b, 0, (1 << 20) - 1), (Rows{1'000'000, 0}));
}

Code refusal(const std::vector<Shape>& shapes, const Packing& how) {
  try {
    pack(shapes, how);
  } catch (const Error& e) {
    return e.code();
  }
  return Code::kInternal;
}

TEST(FlatBuffer, RefusesWhatCannotBePacked) {
  Packing two{.engine = Engine::kV2};
  EXPECT_EQ(refusal({}, {}), Code::kBadLayout);
  EXPECT_EQ(refusal({{3, 0}}, {}), Code::kBadLayout);
  EXPECT_EQ(refusal({{4}, {0, 3}}, two), Code::kBadLayout);
  EXPECT_EQ(refusal({{4}, {}}, two), Code::kBadLayout);
  EXPECT_EQ(refusal({{4}}, {.ranks = 0}), Code::kBadGrid);
  EXPECT_EQ(refusal({{4}}, {.ranks = -3}), Code::kBadGrid);
  EXPECT_EQ(refusal({{4}}, {.ranks = 4, .hsdp = 3}), Code::kBadGrid);
  EXPECT_EQ(refusal({{4}}, {.ranks = 4, .hsdp = 0}), Code::kBadGrid);
  Packing outer{.strategy = Strategy::kOptim, .ranks = 4, .hsdp = 2, .outer = HsdpOuter::kShard};
  EXPECT_EQ(refusal({{4}}, outer), Code::kBadLayout);
  for (Strategy s : {Strategy::kNoShard, Strategy::kOptim, Strategy::kOptimGrads}) {
    outer.engine = Engine::kV2, outer.strategy = s;
    EXPECT_EQ(refusal({{4}}, outer), Code::kBadLayout);
  }
  outer.hsdp = 1;  // one instance has no outer dimension
  EXPECT_EQ(refusal({{4}}, outer), Code::kInternal);
}

TEST(FlatBuffer, RefusesSizesBeyond63Bits) {
  constexpr i64 kPrime = 4294967291, kOther = 4294967279;
  std::vector<Shape> coprime{{1, kPrime}, {2, kOther}};
  EXPECT_EQ(refusal(coprime, {}), Code::kSizeOverflow);
  EXPECT_EQ(refusal(coprime, {.engine = Engine::kV2}), Code::kSizeOverflow);
  EXPECT_EQ(refusal({{10, 4}}, {.ranks = i64{1} << 62}), Code::kSizeOverflow);
  std::vector<Shape> halves{{i64{1} << 62}, {i64{1} << 62}};
  EXPECT_EQ(refusal(halves, {}), Code::kSizeOverflow);
  EXPECT_EQ(refusal({{1, 2}, {(i64{1} << 62) + 1}, {(i64{1} << 62) - 3}}, {}), Code::kSizeOverflow);
  FlatBuffer b = v1({{i64{1} << 62}}, 2);
  EXPECT_EQ(item_range(b, 0, 1), (ItemRange{i64{1} << 61, i64{1} << 62}));
}

TEST(FlatBuffer, NamesLeadBack) {
  for (Strategy s :
       {Strategy::kNoShard, Strategy::kOptim, Strategy::kOptimGrads, Strategy::kOptimGradsParams})
    EXPECT_EQ(strategy_from_name(strategy_name(s)), s);
  for (Engine e : {Engine::kV1, Engine::kV2}) EXPECT_EQ(engine_from_name(engine_name(e)), e);
  EXPECT_THROW(strategy_from_name("zero3"), Error);
  EXPECT_THROW(engine_from_name("v3"), Error);
}

// The packing that Megatron-FSDP itself made of 162 lists of shapes.
TEST(FlatBuffer, AgreesWithMegatronFsdp) {
  GoldenJson cases = read_golden("layout/fsdp_layout_cases.json");
  EXPECT_EQ(cases.size(), 162u);
  for (std::size_t i = 0; i < cases.size(); i++) {
    SCOPED_TRACE(i);
    const GoldenJson &c = cases[i], &first = c["v1"], &second = c["v2"];
    std::vector<Shape> shapes;
    for (const GoldenJson& s : c["shapes"].items()) shapes.emplace_back(s.integers());
    FlatBuffer b = v1(shapes, c["world"].integer(), strategy_from_name(c["strategy"].string()));
    expect_size(b, first["csf"].integer(), first["bucket"].integer(), first["shard"].integer());
    EXPECT_EQ(b.order, first["order"].integers());
    EXPECT_EQ(offsets(b), first["offsets"].integers());
    EXPECT_EQ(row_aligned(b), first["row_aligned"].boolean());
    for (std::size_t p = 0; p < shapes.size(); p++) {
      Ranges expected;
      for (const GoldenJson& r : first["item_ranges"][p].items())
        expected.push_back({r[0].integer(), r[1].integer()});
      EXPECT_EQ(ranges(b, static_cast<i64>(p)), expected);
    }
    b = v2(shapes, c["world"].integer());
    EXPECT_EQ(offsets(b), second["offsets"].integers());
    EXPECT_EQ(b.bucket_items, second["size"].integer());
    EXPECT_TRUE(row_aligned(b));
  }
}

// Lists of shapes as v2 itself packed them, under every strategy of one and two axes of its mesh.
TEST(FlatBuffer, AgreesWithV2UnderEveryStrategy) {
  GoldenJson runs = read_golden("layout/v2_strategies.json");
  i64 packed = 0, refused = 0;
  for (const GoldenJson& run : runs.items()) {
    const std::vector<i64> mesh = run["mesh"].integers();
    const std::vector<std::string> axes = run["axes"].strings();
    Packing how{.engine = Engine::kV2, .strategy = strategy_from_name(axes.back()), .ranks = mesh[0]};
    if (mesh.size() > 1) {
      how.ranks = mesh[0] * mesh[1], how.hsdp = mesh[0];
      how.outer = axes[0] == "no_shard" ? HsdpOuter::kReplicate : HsdpOuter::kShard;
    }
    std::vector<Shape> shapes;
    for (const GoldenJson& s : run["shapes"].items()) shapes.emplace_back(s.integers());
    if (run.find("refused")) {
      EXPECT_THROW(pack(shapes, how), Error) << axes[0] << " " << axes.back();
      refused++;
      continue;
    }
    const FlatBuffer b = pack(shapes, how);
    packed++;
    EXPECT_EQ(b.bucket_items, run["size"].integer());
    EXPECT_EQ(offsets(b), run["offsets"].integers());
    if (how.strategy == Strategy::kNoShard) continue;  // every rank has everything
    for (i64 d = 0; d < how.ranks; d++) {
      const i64 s = place_of(d, how.ranks, how.hsdp, how.outer).shard;
      EXPECT_EQ((I{s * b.shard_items, b.shard_items}), run["main"][d].integers());
      for (i64 p = 0; p < std::ssize(shapes); p++) {
        const ItemRange held = item_range(b, p, s);
        EXPECT_EQ((I{held.begin, held.end}), run["held"][d][p].integers());
      }
    }
  }
  EXPECT_EQ(packed, 132);
  EXPECT_EQ(refused, 108);
}

TEST(FirstFit, FindsTheFirstFromAPositionOnUntilItIsTaken) {
  FirstFit f(std::vector<i64>{5, 3, FirstFit::kAbsent, 3, 1});
  EXPECT_EQ(f.find(0, 5), 0u);
  EXPECT_EQ(f.find(0, 4), 1u);
  EXPECT_EQ(f.find(2, 4), 3u);
  EXPECT_EQ(f.find(0, 2), 4u);
  EXPECT_EQ(f.find(0, 0), FirstFit::kNone);
  EXPECT_EQ(f.find(5, 9), FirstFit::kNone);
  f.take(1);
  EXPECT_EQ(f.find(0, 4), 3u);
  f.take(3);
  f.take(4);
  EXPECT_EQ(f.find(1, 9), FirstFit::kNone);
  EXPECT_EQ(FirstFit({}).find(0, 9), FirstFit::kNone);
}

}  // namespace flat_buffer_test
}  // namespace mckpt::impl
