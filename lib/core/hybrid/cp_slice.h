// Context-parallel slices: the rows of a tensor that one context-parallel rank computes with. Checkpoints do
// not know them: every such rank stores the whole tensor that its tensor-parallel rank holds, and takes its
// slice in the forward pass. All sizes here are those of one tensor-parallel rank.
//
//   a Mamba convolution, 16 + 6 + 6 rows, of rank 2 of 4 with 2 groups of 3 states: two ranks share a group
//
//   |x 0 . . . . . . . 8 9 10 11 . . . 15|B 16 17 18 19 20 21|C 22 23 24 25 26 27|
//                      '-------'                    '------'            '------'
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/items/item_run.h"

namespace mckpt {

// Rows [begin, end) of a tensor.
struct RowRange {
  i64 begin, end;

  friend bool operator==(const RowRange&, const RowRange&) = default;
};

struct CpRank {
  i64 size = 1, rank = 0;
};
// More context-parallel ranks, or Householder copies, than this are refused: both are counts of pieces.
inline constexpr i64 kMaxCpPieces = 65536;

// Every function throws kBadGrid where a size is not positive or beyond reason, kBadRank where the rank is
// not below the size, kBadSlice where sizes do not divide. Ranges are in the order in which the rank
// concatenates them; neighbours are joined.

struct MambaSizes {
  i64 d_inner, heads, groups, state;
};
struct MambaSlice {
  std::vector<RowRange> conv;  // of conv1d weight and bias: x, B, C
  RowRange heads;              // of dt_bias, A_log, D
  RowRange d_hidden;           // of a D with hidden dimension
  i64 local_heads, local_groups;
  i64 group_repeat;  // consecutive ranks that share each group
  i64 conv_channels;
};
MambaSlice mamba_cp_slice(const MambaSizes& sizes, const CpRank& cp);

// A gated delta product: as Mamba, with V and K once for each Householder reflection, in conv order V, K, Q.
// It has no D.
MambaSlice gdp_cp_slice(const MambaSizes& sizes, i64 householders, const CpRank& cp);

// Gated delta nets slice every section of a tensor alike: rows [rank*s/size, (rank+1)*s/size), rounded down,
// of each section of s rows. This never fails to divide; the permutation below does.
std::vector<RowRange> section_cp_slice(std::span<const i64> sections, const CpRank& cp);
// The order in which the in_proj rows of all ranks are laid: for each rank its chunk of each section. Every
// section must divide by the number of ranks.
std::vector<RowRange> section_cp_order(std::span<const i64> sections, i64 cp_size);

struct GdnSizes {
  i64 qk_dim, v_dim;
};
std::array<i64, 3> gdn_conv_sections(const GdnSizes& sizes);                      // query key value
std::array<i64, 6> gdn_in_proj_sections(const GdnSizes& sizes, i64 value_heads);  // and z beta alpha
std::array<i64, 7> gdn2_in_proj_sections(const GdnSizes& sizes);                  // and z f b w

// The rows as runs over the items of a tensor with rows of `row_items` items. pre: the tensor's items fit 63
// bits.
std::vector<ItemRun> row_runs(std::span<const RowRange> rows, i64 row_items, i32 slot = 0);

}  // namespace mckpt
