// How rows are cut: a Mamba convolution part by part, a gated delta net section by section.
#include "core/hybrid/cp_slice.h"
#include "core/base/error.h"

namespace mckpt::impl {
namespace {

// These throw kBadGrid, kBadRank and kBadSlice, naming what does not fit.
void check_positive(i64 n, const char* what) {
  if (n < 1)
    throw Error(Code::kBadGrid, cat("context-parallel slice: ", what, " must be positive"))
        .expected("1 or more")
        .found(n);
}

void check_rank(const CpRank& cp) {
  check_positive(cp.size, "the number of ranks");
  if (cp.rank < 0 || cp.rank >= cp.size)
    throw Error(Code::kBadRank, "there is no such context-parallel rank")
        .expected(cat("0 to ", cp.size - 1))
        .found(cp.rank);
}

void check_divides(i64 n, i64 by, const char* what, const char* by_what) {
  if (n % by != 0)
    throw Error(Code::kBadSlice,
                cat("context-parallel slice: ", what, " do not divide by ", by_what, " (not_divisible)"))
        .expected(cat("a multiple of ", by))
        .found(n);
}

// Adds a range; one that continues the range before it is joined with it.
void append(std::vector<RowRange>& ranges, RowRange r) {
  if (r.begin == r.end) return;
  if (!ranges.empty() && ranges.back().end == r.begin)
    ranges.back().end = r.end;
  else
    ranges.push_back(r);
}

// floor(a * b / c) without overflow. pre: a >= 0, 0 <= b <= c.
i64 scaled(i64 a, i64 b, i64 c) { return static_cast<i64>(static_cast<__int128>(a) * b / c); }

// The walk over a packed convolution: each part is cut at the same place of its own.
struct PartSlicer {
  i64 start = 0;
  std::vector<RowRange> ranges;

  void take(i64 part_rows, i64 chunk, i64 index) {
    i64 begin = start + index * chunk;
    append(ranges, {begin, begin + chunk});
    start += part_rows;
  }
};

// Everything but the convolution, which differs in the copies of its parts. With fewer groups than ranks,
// neighbouring ranks take the same group; otherwise every rank takes groups of its own.
MambaSlice head_slices(const MambaSizes& sizes, const CpRank& cp) {
  check_positive(sizes.d_inner, "d_inner");
  check_positive(sizes.heads, "the number of heads");
  check_positive(sizes.groups, "the number of groups");
  check_positive(sizes.state, "the state size");
  check_rank(cp);
  check_divides(sizes.heads, cp.size, "the heads", "the number of ranks");
  check_divides(sizes.d_inner, cp.size, "the inner rows", "the number of ranks");
  MambaSlice slice{};
  if (sizes.groups < cp.size) {
    check_divides(cp.size, sizes.groups, "the ranks", "the number of groups");
    slice.local_groups = 1;
    slice.group_repeat = cp.size / sizes.groups;
  } else {
    check_divides(sizes.groups, cp.size, "the groups", "the number of ranks");
    slice.local_groups = sizes.groups / cp.size;
    slice.group_repeat = 1;
  }
  i64 inner = sizes.d_inner / cp.size;
  slice.local_heads = sizes.heads / cp.size;
  slice.heads = {cp.rank * slice.local_heads, (cp.rank + 1) * slice.local_heads};
  slice.d_hidden = {cp.rank * inner, (cp.rank + 1) * inner};
  return slice;
}

// Checks the sections, and that their rows fit 63 bits together.
i64 total_rows(std::span<const i64> sections) {
  i64 total = 0;
  for (i64 rows : sections) {
    check_positive(rows, "a section");
    total = checked_add(total, rows, "the number of rows of the sections");
  }
  return total;
}

}  // namespace

// x is cut by rank; B and C by the group that the rank belongs to.
MambaSlice mamba_cp_slice(const MambaSizes& sizes, const CpRank& cp) {
  MambaSlice slice = head_slices(sizes, cp);
  const char* kRows = "the number of rows of the convolution";
  i64 group_rows = checked_mul(sizes.groups, sizes.state, kRows);
  checked_add(sizes.d_inner, checked_mul(2, group_rows, kRows), kRows);
  i64 inner = sizes.d_inner / cp.size, state = slice.local_groups * sizes.state;
  PartSlicer parts;
  parts.take(sizes.d_inner, inner, cp.rank);
  for (int part = 0; part < 2; part++) parts.take(group_rows, state, cp.rank / slice.group_repeat);
  slice.conv = std::move(parts.ranges);
  slice.conv_channels = inner + 2 * state;
  return slice;
}

// A section of 6 rows over 4 ranks: [0, 1) [1, 3) [3, 4) [4, 6).
std::vector<RowRange> section_cp_slice(std::span<const i64> sections, const CpRank& cp) {
  check_rank(cp);
  total_rows(sections);
  std::vector<RowRange> ranges;
  i64 start = 0;
  for (i64 rows : sections) {
    append(ranges, {start + scaled(rows, cp.rank, cp.size), start + scaled(rows, cp.rank + 1, cp.size)});
    start += rows;
  }
  return ranges;
}

std::array<i64, 3> gdn_conv_sections(const GdnSizes& s) { return {s.qk_dim, s.qk_dim, s.v_dim}; }

}  // namespace mckpt::impl
