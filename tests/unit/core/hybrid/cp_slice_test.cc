#include "core/hybrid/cp_slice.h"

#include <gtest/gtest.h>

#include "tests/support/golden_json.h"

namespace mckpt {
namespace cp_slice_test {

std::vector<i64> rows(std::span<const RowRange> ranges) {
  std::vector<i64> out;
  for (const RowRange& r : ranges)
    for (i64 row = r.begin; row < r.end; row++) out.push_back(row);
  return out;
}

std::vector<i64> rows(const RowRange& range) { return rows(std::span(&range, 1)); }

template <typename Fn>
bool divides(Fn&& fn) {
  try {
    fn();
    return true;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kBadSlice) << e.what();
    EXPECT_NE(e.message().find("not_divisible"), std::string::npos);
    return false;
  }
}

void check_mamba(const GoldenJson& c, const CpRank& cp) {
  MambaSizes sizes{c["d_inner_local_tp"].integer(), c["nheads_local_tp"].integer(),
                   c["ngroups_local_tp"].integer(), c["d_state"].integer()};
  MambaSlice slice;
  ASSERT_EQ(divides([&] { slice = mamba_cp_slice(sizes, cp); }), c["ok"].boolean());
  if (!c["ok"].boolean()) return;
  EXPECT_EQ(rows(slice.conv), c["conv_rows"].integers());
  EXPECT_EQ(rows(slice.heads), c["head_rows"].integers());
  EXPECT_EQ(rows(slice.d_hidden), c["D_hdim_rows"].integers());
  EXPECT_EQ(slice.local_heads, c["nheads_local_tpcp"].integer());
  EXPECT_EQ(slice.local_groups, c["ngroups_local_tpcp"].integer());
  EXPECT_EQ(slice.group_repeat, c["group_repeat_count"].integer());
  EXPECT_EQ(slice.conv_channels, c["conv_channels"].integer());
}

void check_gdn(const GoldenJson& c, const CpRank& cp) {
  GdnSizes sizes{c["qk_dim_local_tp"].integer(), c["v_dim_local_tp"].integer()};
  i64 heads = c["num_v_heads_local_tp"].integer();
  EXPECT_EQ(rows(section_cp_slice(gdn_conv_sections(sizes), cp)), c["conv_rows"].integers());
  EXPECT_EQ(rows(section_cp_slice(std::array{heads}, cp)), c["head_rows"].integers());
  std::vector<RowRange> order;
  bool ok = divides([&] { order = section_cp_order(gdn_in_proj_sections(sizes, heads), cp.size); });
  EXPECT_EQ(ok, c.find("in_proj_head_perm_error") == nullptr);
  if (ok) {
    EXPECT_EQ(rows(order), c["in_proj_head_perm"].integers());
  }
}

TEST(CpSlice, AgreesWithTheRecordedSlices) {
  GoldenJson golden = read_golden("hybrid/cp_slices.json");
  ASSERT_EQ(golden["cases"].size(), 60u);
  for (const GoldenJson& c : golden["cases"].items()) {
    CpRank cp{c["cp_size"].integer(), c["cp_rank"].integer()};
    SCOPED_TRACE(cat(c["op"].string(), " rank ", cp.rank, " of ", cp.size));
    if (c["op"].string() == "mamba_cp_slice")
      check_mamba(c, cp);
    else
      check_gdn(c, cp);
  }
}

TEST(CpSlice, RanksThatShareAGroupSliceTheSameRows) {
  for (i64 rank = 0; rank < 4; rank++) {
    MambaSlice slice = mamba_cp_slice({16, 4, 2, 3}, {4, rank});
    i64 b = rank < 2 ? 16 : 19;
    std::vector<RowRange> want{{rank * 4, rank * 4 + 4}, {b, b + 3}, {b + 6, b + 9}};
    if (want[0].end == want[1].begin) want = {{want[0].begin, want[1].end}, want[2]};
    EXPECT_EQ(slice.conv, want);
  }
}

// Row by row, as the views of the real code do it: [copies, rows] cut along the second axis.
std::vector<i64> naive_gdp(const MambaSizes& s, i64 copies, const CpRank& cp) {
  i64 repeat = s.groups < cp.size ? cp.size / s.groups : 1;
  i64 local_groups = s.groups < cp.size ? 1 : s.groups / cp.size;
  std::vector<i64> out;
  i64 start = 0;
  auto part = [&](i64 part_rows, i64 chunk, i64 index) {
    for (i64 row = 0; row < part_rows; row++)
      if (row / chunk == index) out.push_back(start + row);
    start += part_rows;
  };
  for (i64 i = 0; i < copies; i++) part(s.d_inner, s.d_inner / cp.size, cp.rank);
  for (i64 i = 0; i < copies; i++) part(s.groups * s.state, local_groups * s.state, cp.rank / repeat);
  part(s.groups * s.state, local_groups * s.state, cp.rank / repeat);
  return out;
}

TEST(CpSlice, GatedDeltaProductsSliceEveryCopy) {
  for (i64 copies = 1; copies <= 3; copies++)
    for (i64 groups : {1, 2, 4, 8})
      for (i64 size : {1, 2, 4, 8})
        for (i64 rank = 0; rank < size; rank++) {
          MambaSizes sizes{16, 8, groups, 3};
          MambaSlice slice = gdp_cp_slice(sizes, copies, {size, rank});
          EXPECT_EQ(rows(slice.conv), naive_gdp(sizes, copies, {size, rank}));
          EXPECT_EQ(std::ssize(rows(slice.conv)), slice.conv_channels);
          EXPECT_EQ(slice.heads, (RowRange{rank * 8 / size, (rank + 1) * 8 / size}));
        }
}

TEST(CpSlice, TheOrderOfGdn2IsAPermutationThatRanksCutEvenly) {
  auto sections = gdn2_in_proj_sections({8, 12});
  EXPECT_EQ(sections, (std::array<i64, 7>{8, 8, 12, 12, 8, 8, 12}));
  std::vector<i64> order = rows(section_cp_order(sections, 4));
  ASSERT_EQ(order.size(), 68u);
  std::vector<i64> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (i64 i = 0; i < 68; i++) EXPECT_EQ(sorted[i], i);
  for (i64 rank = 0; rank < 4; rank++)
    EXPECT_EQ(rows(section_cp_slice(sections, {4, rank})),
              std::vector<i64>(order.begin() + rank * 17, order.begin() + (rank + 1) * 17));
}

TEST(CpSlice, ASectionThatDoesNotDivideIsCutDownwards) {
  EXPECT_EQ(section_cp_slice(std::array<i64, 2>{5, 2}, {4, 3}), (std::vector<RowRange>{{3, 5}, {6, 7}}));
  EXPECT_EQ(section_cp_slice(std::array<i64, 2>{5, 2}, {4, 0}), (std::vector<RowRange>{{0, 1}}));
  EXPECT_FALSE(divides([] { section_cp_order(std::array<i64, 2>{8, 2}, 4); }));
}

TEST(CpSlice, RefusesSizesThatMakeNoSense) {
  auto code = [](auto&& fn) {
    try {
      fn();
    } catch (const Error& e) {
      return e.code();
    }
    return Code::kInternal;
  };
  EXPECT_EQ(code([] { mamba_cp_slice({0, 4, 2, 3}, {}); }), Code::kBadGrid);
  EXPECT_EQ(code([] { mamba_cp_slice({16, 4, -2, 3}, {}); }), Code::kBadGrid);
  EXPECT_EQ(code([] { mamba_cp_slice({16, 4, 2, 3}, {2, 2}); }), Code::kBadRank);
  EXPECT_EQ(code([] { mamba_cp_slice({16, 4, 2, 3}, {0, 0}); }), Code::kBadGrid);
  EXPECT_EQ(code([] { mamba_cp_slice({16, 4, INT64_MAX, 3}, {}); }), Code::kSizeOverflow);
  EXPECT_EQ(code([] { mamba_cp_slice({17, 4, 2, 3}, {2, 0}); }), Code::kBadSlice);
  EXPECT_EQ(code([] { gdp_cp_slice({16, 4, 2, 3}, kMaxCpPieces + 1, {}); }), Code::kBadGrid);
  EXPECT_EQ(code([] { section_cp_order(std::array{INT64_MAX}, INT64_MAX); }), Code::kBadGrid);
  EXPECT_EQ(code([] { section_cp_slice(std::array{INT64_MAX, INT64_MAX}, {}); }), Code::kSizeOverflow);
  EXPECT_EQ(section_cp_slice(std::array{INT64_MAX}, {2, 1}),
            (std::vector<RowRange>{{INT64_MAX / 2, INT64_MAX}}));
}

TEST(CpSlice, RowsBecomeRunsOverItems) {
  std::vector<RowRange> ranges{{2, 3}, {5, 9}};
  EXPECT_EQ(to_string(row_runs(ranges, 4)),
            to_string(std::vector<ItemRun>{{0, 8, 4, {}, {}}, {0, 20, 16, {}, {}}}));
  EXPECT_EQ(row_runs(ranges, 4, 3)[1].slot, 3);
}

}  // namespace cp_slice_test
}  // namespace mckpt
