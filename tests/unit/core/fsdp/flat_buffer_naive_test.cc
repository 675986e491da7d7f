// Packing once more, the way the rules read: lists, linear searches, one item at a time. The result of pack()
// with indexes must be the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "core/base/error.h"
#include "core/fsdp/flat_buffer.h"
#include "core/items/item_run.h"
#include "core/items/shape.h"

namespace mckpt::impl {
namespace flat_buffer_naive_test {

struct Naive {
  std::vector<Shape> shapes;
  Engine engine = Engine::kV1;
  i64 chunk = 1, bucket = 0;
  std::vector<i64> offsets;

  i64 items(i64 p) const { return shapes[static_cast<std::size_t>(p)].items(); }
  i64 row(i64 p) const { return shapes[static_cast<std::size_t>(p)].row_items(); }
  i64& offset(i64 p) { return offsets[static_cast<std::size_t>(p)]; }
  bool v1() const { return engine == Engine::kV1; }
  i64 aligned(i64 at, i64 p) const { return v1() ? at : (at + row(p) - 1) / row(p) * row(p); }

  void set_chunk(const std::vector<i64>& order) {
    chunk = v1() ? row(order[0]) : 1;
    for (i64 p : order) {
      if (v1() && row(p) == chunk) continue;
      if (v1() && chunk % row(p) == 0 && items(p) % chunk == 0) continue;
      if (v1() && items(p) < chunk) continue;
      chunk = std::lcm(chunk, row(p));
    }
  }

  i64 place(std::vector<i64> regular, std::vector<i64> fragments) {
    i64 pos = 0;
    while (!regular.empty()) {
      i64 p = regular.front();
      regular.erase(regular.begin());
      offset(p) = pos;
      if (items(p) % chunk == 0) {
        pos += items(p);
        continue;
      }
      i64 gap = pos + items(p), rem = items(p) % chunk;
      pos += (items(p) / chunk + 1) * chunk;
      i64 gap_end = pos;
      for (std::size_t k = 0; k < regular.size(); k++) {
        i64 q = regular[k], q_rem = items(q) % chunk;
        if (q_rem == 0 || rem + q_rem > chunk) continue;
        offset(q) = gap_end = pos - q_rem;
        pos += items(q) / chunk * chunk;
        regular.erase(regular.begin() + static_cast<std::ptrdiff_t>(k));
        break;
      }
      for (std::size_t k = 0; k < fragments.size();) {
        i64 f = fragments[k];
        if (aligned(gap, f) + items(f) > gap_end) {
          k++;
          continue;
        }
        offset(f) = aligned(gap, f);
        gap = offset(f) + items(f);
        fragments.erase(fragments.begin() + static_cast<std::ptrdiff_t>(k));
      }
    }
    for (i64 f : fragments) {
      offset(f) = aligned(pos, f);
      pos = offset(f) + items(f);
    }
    return pos;
  }

  void pack(i64 ranks, Strategy strategy) {
    std::vector<i64> order(shapes.size()), regular, fragments;
    std::iota(order.begin(), order.end(), 0);
    if (v1()) std::stable_sort(order.begin(), order.end(), [&](i64 a, i64 b) { return row(a) > row(b); });
    set_chunk(order);
    for (i64 p : order) (items(p) < chunk ? fragments : regular).push_back(p);
    if (!v1())
      std::stable_sort(fragments.begin(), fragments.end(), [&](i64 a, i64 b) { return items(a) > items(b); });
    offsets.assign(shapes.size(), -1);
    bucket = place(regular, fragments);
    i64 stripe = ranks * chunk;
    if (!v1() || strategy != Strategy::kNoShard) bucket = (bucket + stripe - 1) / stripe * stripe;
  }
};

::testing::AssertionResult same(const FlatBuffer& b, const Naive& n) {
  bool equal = b.chunk_items == n.chunk && b.bucket_items == n.bucket;
  for (std::size_t p = 0; p < n.offsets.size(); p++) equal &= b.parameters[p].offset == n.offsets[p];
  if (equal) return ::testing::AssertionSuccess();
  std::string text = cat(engine_name(n.engine), ", ", b.shards, " ranks:");
  for (const Shape& s : n.shapes) text += cat(" ", to_string(s));
  text += cat(": chunk ", b.chunk_items, " for ", n.chunk, ", bucket ", b.bucket_items, " for ", n.bucket,
              ", offsets");
  for (std::size_t p = 0; p < n.offsets.size(); p++)
    text += cat(" ", b.parameters[p].offset, " for ", n.offsets[p]);
  return ::testing::AssertionFailure() << text;
}

// Every item of the bucket belongs to one parameter at most, and of each parameter, every item is on the
// shard that its place in the bucket says, and on no other.
bool tiles_item_by_item(const FlatBuffer& b, bool sharded) {
  std::vector<int> owners(static_cast<std::size_t>(b.bucket_items));
  bool aligned = true;
  for (i64 p = 0; p < std::ssize(b.parameters); p++) {
    const PackedParameter& param = b.parameters[static_cast<std::size_t>(p)];
    std::vector<i64> shard_of(static_cast<std::size_t>(param.items), -1);
    for (i64 s = 0; s < b.shards; s++) {
      ItemRange r = item_range(b, p, s);
      if (r.empty() && r != ItemRange{}) return false;
      aligned &= r.begin % param.row_items == 0 && r.end % param.row_items == 0;
      for (i64 i = r.begin; i < r.end; i++) {
        i64& of = shard_of[static_cast<std::size_t>(i)];
        if (of != -1 || (param.offset + i) / b.shard_items != s) return false;
        of = s;
      }
    }
    for (i64 i = 0; i < param.items; i++) {
      if (sharded && shard_of[static_cast<std::size_t>(i)] == -1) return false;
      if (owners[static_cast<std::size_t>(param.offset + i)]++ != 0) return false;
    }
  }
  return aligned == row_aligned(b);
}

// Each list of `length` of these shapes, by number.
std::vector<Shape> list_number(i64 number, int length) {
  static const Shape kShapes[] = {{1}, {5}, {1, 2}, {3, 2}, {2, 3}, {5, 3}, {4, 4}, {3, 6}, {2, 1, 5}};
  std::vector<Shape> out;
  for (int i = 0; i < length; i++, number /= std::ssize(kShapes))
    out.push_back(kShapes[number % std::ssize(kShapes)]);
  return out;
}

TEST(FlatBufferNaive, AgreesOnEverySmallListOfShapes) {
  i64 lists = 1;
  for (int length = 1; length <= 4; length++) {
    lists *= 9;
    for (i64 number = 0; number < lists; number++) {
      Naive n;
      n.shapes = list_number(number, length);
      for (i64 ranks : {1, 2, 3, 5}) {
        // The two strategies that v1 distinguishes, and v2, which pads like the second.
        for (int kind = 0; kind < 3; kind++) {
          Strategy strategy = kind == 0 ? Strategy::kNoShard : Strategy::kOptim;
          n.engine = kind == 2 ? Engine::kV2 : Engine::kV1;
          n.pack(ranks, strategy);
          FlatBuffer b = pack(n.shapes, {n.engine, strategy, ranks});
          ASSERT_TRUE(same(b, n));
          if (length < 4) {
            ASSERT_TRUE(tiles_item_by_item(b, kind != 0)) << number << " of length " << length;
          }
          if (kind == 2) {
            ASSERT_TRUE(row_aligned(b));
          }
        }
      }
    }
  }
}

TEST(FlatBufferNaive, AgreesOnAHundredThousandRandomLists) {
  std::mt19937 random(20251121);
  auto below = [&](i64 n) { return static_cast<i64>(random() % static_cast<u64>(n)); };
  int packed = 0;
  for (int round = 0; round < 100'000; round++) {
    Naive n;
    for (i64 k = 1 + below(12); k > 0; k--) {
      std::vector<i64> dims;
      for (i64 d = 1 + below(3); d > 0; d--) dims.push_back(1 + below(round % 2 ? 6 : 40));
      n.shapes.emplace_back(dims);
    }
    n.engine = below(2) ? Engine::kV1 : Engine::kV2;
    i64 ranks = 1 + below(64);
    FlatBuffer b;
    try {
      b = pack(n.shapes, {n.engine, Strategy::kOptim, ranks});
    } catch (const Error& e) {
      // Twelve unlike rows can have a common multiple beyond any buffer.
      ASSERT_EQ(e.code(), Code::kSizeOverflow);
      continue;
    }
    n.pack(ranks, Strategy::kOptim);
    ASSERT_TRUE(same(b, n));
    packed++;
  }
  EXPECT_GT(packed, 95'000);
}

// 100,000 parameters that all leave a remainder and never pair, and as many fragments that never fit a gap:
// looking at all pairs would take longer than a test may.
TEST(FlatBufferNaive, ManyParametersThatNeverPairTakeNoLongTime) {
  constexpr i64 kMany = 100'000;
  std::vector<Shape> shapes{{1, 100}};
  for (i64 i = 0; i < kMany; i++) shapes.push_back({160});
  for (i64 i = 0; i < kMany; i++) shapes.push_back({41});
  FlatBuffer b = pack(shapes, {Engine::kV1, Strategy::kOptim, 1024});
  EXPECT_EQ(b.chunk_items, 100);
  EXPECT_EQ(b.parameters[kMany].offset, 100 + 200 * (kMany - 1));
  EXPECT_EQ(b.parameters[2 * kMany].end(), 100 + 241 * kMany);
}

// Fragments that would fit every gap but for their alignment.
TEST(FlatBufferNaive, ManyUnalignedGapsTakeNoLongTime) {
  constexpr i64 kMany = 100'000;
  std::vector<Shape> shapes{{1, 100}};
  for (i64 i = 0; i < kMany; i++) shapes.push_back({179});
  for (i64 i = 0; i < kMany; i++) shapes.push_back({1, 20});
  FlatBuffer b = pack(shapes, {Engine::kV2, Strategy::kOptim, 1024});
  EXPECT_EQ(b.chunk_items, 100);
  EXPECT_EQ(b.parameters[kMany].offset, 100 + 200 * (kMany - 1));
  EXPECT_EQ(b.parameters[kMany + 1].offset, 280);  // the first gap begins at 279
}

}  // namespace flat_buffer_naive_test
}  // namespace mckpt::impl
