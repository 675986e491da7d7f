// Gated MLP: the first layer of gate and up. Every cell holds its part of gate above its part of up, so the
// cells one after the other are not [gate; up], and another parallel size is not another cut of the same
// rows.
//
//   cell 0    gate rows [0, n)      up rows [0, n)
//   cell 1    gate rows [n, 2n)     up rows [n, 2n)
//
// A width of 4 rows over 2 cells, and over 1:
//
//   2 cells   g0 g1 u0 u1 | g2 g3 u2 u3         read as if by 1 cell, row 2 would be u0 where g2 belongs
//   1 cell    g0 g1 g2 g3 u0 u1 u2 u3
//
// `gated_mlp` takes gate and up from two tensors, `gated_mlp_joined` from one that has all of gate above all
// of up ([2n, hidden], gate_up_proj of Phi-3 and GLM-4).
//
// Checkpoints of Megatron-FSDP therefore store the halves under keys of their own, `_w` (gate) and `_v` (up),
// whose rows are in global order for any number of cells.
#include "core/base/error.h"
#include "mappings/rules/blocks.h"
#include "mappings/rules/families.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kRoles[] = {"gate_proj", "up_proj"};
constexpr std::string_view kJoinedRoles[] = {"gate_up_proj"};
constexpr std::string_view kWidth = "the width of the MLP";

Holding hold_gated(const RuleInput& in) {
  expect_rank(in, 0, kRoles[0], 1, 2);
  const Shape& gate = in.sources[0].shape;
  expect_shape(in, 1, kRoles[1], gate, "gate_proj");
  RowBlock blocks[] = {{0, 0, gate[0]}, {1, 0, gate[0]}};
  return hold_blocks(blocks, gate, in.part, kWidth);
}

// One tensor: the rows of gate, then the rows of up.
Holding hold_joined(const RuleInput& in) {
  expect_rank(in, 0, kJoinedRoles[0], 1, 2);
  const Shape& both = in.sources[0].shape;
  if (both[0] % 2 != 0)
    throw Error(Code::kSourceShape, cat("the source ", kJoinedRoles[0], " has not two halves"))
        .expected("an even number of rows, gate and up")
        .found(to_string(both));
  i64 width = both[0] / 2;
  RowBlock blocks[] = {{0, 0, width}, {0, width, width}};
  return hold_blocks(blocks, both, in.part, kWidth);
}

constexpr Rule kRules[] = {
    {"gated_mlp", kRoles, "each cell's part of gate above its part of up", hold_gated, KeySplit::kSwiglu},
    {"gated_mlp_joined", kJoinedRoles,
     "each cell's part of gate above its part of up, from one tensor with both", hold_joined,
     KeySplit::kSwiglu},
};

}  // namespace

std::span<const Rule> gated_mlp_rules() { return kRules; }

}  // namespace mckpt::impl
