#include "core/hybrid/cp_slice.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/support/golden_json.h"

namespace mckpt::impl {
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

TEST(CpSlice, ASectionThatDoesNotDivideIsCutDownwards) {
  EXPECT_EQ(section_cp_slice(std::array<i64, 2>{5, 2}, {4, 3}), (std::vector<RowRange>{{3, 5}, {6, 7}}));
  EXPECT_EQ(section_cp_slice(std::array<i64, 2>{5, 2}, {4, 0}), (std::vector<RowRange>{{0, 1}}));
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
  EXPECT_EQ(code([] { section_cp_slice(std::array{INT64_MAX, INT64_MAX}, {}); }), Code::kSizeOverflow);
  EXPECT_EQ(section_cp_slice(std::array{INT64_MAX}, {2, 1}),
            (std::vector<RowRange>{{INT64_MAX / 2, INT64_MAX}}));
}

}  // namespace cp_slice_test
}  // namespace mckpt::impl
