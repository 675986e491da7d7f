// Context-parallel slices: the rows of a tensor that one context-parallel rank computes with. Checkpoints do
// not know them: every such rank stores the whole tensor that its tensor-parallel rank holds, and takes its
// slice in the forward pass. All sizes here belong to one tensor-parallel rank.
//
//   a Mamba convolution, 16 + 6 + 6 rows, of rank 2 of 4 with 2 groups of 3 states: two ranks share a group
//
//   |x 0 . . . . . . . 8 9 10 11 . . . 15|B 16 17 18 19 20 21|C 22 23 24 25 26 27|
//                      '-------'                    '------'            '------'
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

// Rows [begin, end) of a tensor.
struct RowRange {
  i64 begin, end;

  friend bool operator==(const RowRange&, const RowRange&) = default;
};

// One of the ranks that share a sequence.
struct CpRank {
  i64 size = 1, rank = 0;
};

// Every function throws kBadGrid where a size is not positive, kBadRank where the rank is
// not below the size, kBadSlice where sizes do not divide. Ranges are in the order in which the rank
// concatenates them; neighbours are joined.

// The sizes of a Mamba mixer on one tensor-parallel rank; d_inner is heads * head size.
struct MambaSizes {
  i64 d_inner, heads, groups, state;
};
// The part of each parameter that one context-parallel rank uses.
struct MambaSlice {
  std::vector<RowRange> conv;  // of conv1d weight and bias: x, B, C
  RowRange heads;              // of dt_bias, A_log, D
  RowRange d_hidden;           // of a D with hidden dimension
  i64 local_heads, local_groups;
  i64 group_repeat;  // consecutive ranks that share each group
  i64 conv_channels;
};
MambaSlice mamba_cp_slice(const MambaSizes& sizes, const CpRank& cp);

// Gated delta nets slice every section of a tensor alike: rows [rank*s/size, (rank+1)*s/size), rounded down,
// of each section of s rows. This never fails to divide.
std::vector<RowRange> section_cp_slice(std::span<const i64> sections, const CpRank& cp);

// The rows of queries (and of keys), and of values.
struct GdnSizes {
  i64 qk_dim, v_dim;
};
std::array<i64, 3> gdn_conv_sections(const GdnSizes& sizes);  // query, key, value

}  // namespace mckpt::impl
