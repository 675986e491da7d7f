// Mamba-2: in_proj is z, x, B, C, dt and the convolution is x, B, C, in both formats; every cell holds its
// part of each. The parallel size must divide the number of heads and the number of groups, so that no cell
// is without a group.
//
//   in_proj   [z: inner][x: inner][B: groups * state][C: groups * state][dt: heads]
//
// 4 heads of one row, 2 groups with a state of 1, over 2 cells:
//
//   source    z0 z1 z2 z3 x0 x1 x2 x3 B0 B1 C0 C1 dt0 dt1 dt2 dt3         (16 rows)
//   cell 0    z0 z1       x0 x1       B0    C0    dt0 dt1                 (8 rows)
//   cell 1          z2 z3       x2 x3    B1    C1         dt2 dt3         (8 rows)
#include "mappings/config.h"
#include "mappings/rules/blocks.h"
#include "mappings/rules/families.h"
#include "mappings/rules/sections.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kInProjRoles[] = {"in_proj"};
constexpr std::string_view kConvRoles[] = {"conv1d"};

// The sections follow each other in one source; every cell has its part of each.
Holding hold_sections(const RuleInput& in, std::span<const FusedSection> sections, const Shape& shape) {
  own_part(in.model.mamba.heads, in.part, "the number of Mamba heads");
  own_part(in.model.mamba.groups, in.part, "the number of Mamba groups");
  std::vector<RowBlock> blocks;
  i64 row = 0;
  for (const FusedSection& section : sections) {
    blocks.push_back({0, row, section.rows});
    row += section.rows;
  }
  return hold_blocks(blocks, shape, in.part, "a section of the parameter");
}

Holding hold_in_proj(const RuleInput& in) {
  std::vector<FusedSection> sections = sections_of(KeySplit::kMambaInProj, in.model);
  Shape expected = {rows_of(sections), positive(in.tower.hidden, "the hidden size")};
  expect_shape(in, 0, kInProjRoles[0], expected, "2 * heads * head size + 2 * groups * state + heads");
  return hold_sections(in, sections, expected);
}

Holding hold_conv(const RuleInput& in) {
  std::vector<FusedSection> sections = sections_of(KeySplit::kMambaConv, in.model);
  i64 channels = rows_of(sections);
  Shape expected = in.sources[0].shape.rank() == 1
                       ? Shape{channels}
                       : Shape{channels, 1, positive(in.model.mamba.conv_kernel, "the convolution's width")};
  expect_shape(in, 0, kConvRoles[0], expected, "heads * head size + 2 * groups * state");
  return hold_sections(in, sections, expected);
}

constexpr Rule kRules[] = {
    {"mamba_in_proj", kInProjRoles, "each cell's part of z, x, B, C, dt", hold_in_proj,
     KeySplit::kMambaInProj},
    {"mamba_conv", kConvRoles, "each cell's part of x, B, C; weight and bias", hold_conv,
     KeySplit::kMambaConv},
};

}  // namespace

std::span<const Rule> mamba_rules() { return kRules; }

}  // namespace mckpt::impl
