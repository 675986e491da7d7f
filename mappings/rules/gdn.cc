// Gated delta net. Megatron's in_proj is, on every cell, six blocks: q, k, v, z, b (beta), a (alpha) of the
// cell's key heads and value heads. Hugging Face has them flat in four tensors (Qwen3.5), or grouped by key
// head in two (Qwen3-Next), where the value heads of a key head are neighbours:
//
//   flat      in_proj_qkv    q q q q k k k k v v v v v v v v      in_proj_z, in_proj_b, in_proj_a   by head
//   grouped   in_proj_qkvz   q k v v z z | q k v v z z | ...      in_proj_ba   b b a a | b b a a | ...
//
// The convolution runs over q, k, v and is flat in both.
//
// 2 key heads and 4 value heads, all of one row, read from the grouped form (q0 k0 v0 v1 z0 z1 | q1 k1 v2 v3
// z2 z3):
//
//   1 cell           q0 q1 k0 k1 v0 v1 v2 v3 z0 z1 z2 z3 b0 b1 b2 b3 a0 a1 a2 a3
//   cell 0 of 2      q0    k0    v0 v1       z0 z1       b0 b1       a0 a1
//   cell 1 of 2         q1    k1       v2 v3       z2 z3       b2 b3       a2 a3
//
// Qwen4-Exp in mcore-bridge has two projections, and all three parameters are grouped by key head:
//
//   in_proj_qkvz     q0 k0 v0 v1 z0 z1 q1 k1 v2 v3 z2 z3         in_proj_ba   b0 b1 a0 a1 b2 b3 a2 a3
//   conv1d           q0 k0 v0 v1 q1 k1 v2 v3                     a cell has its key heads' rows
//
// The cells must divide the number of key heads and the number of value heads.
#include "mappings/config.h"
#include "mappings/rules/blocks.h"
#include "mappings/rules/families.h"
#include "mappings/rules/sections.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kFlatRoles[] = {"in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a"};
constexpr std::string_view kGroupedRoles[] = {"in_proj_qkvz", "in_proj_ba"};
constexpr std::string_view kQkvzRoles[] = {"in_proj_qkv", "in_proj_z"};
constexpr std::string_view kBaRoles[] = {"in_proj_b", "in_proj_a"};
constexpr std::string_view kConvRoles[] = {"conv1d"};

// Heads are never cut: throws kBadGrid unless the cells divide both numbers of heads.
void check_cells(const GdnConfig& gdn, Part part) {
  own_part(gdn.key_heads, part, "the number of linear-attention key heads");
  own_part(gdn.value_heads, part, "the number of linear-attention value heads");
}

struct Sizes {
  i64 qk, v, heads;  // rows of q (and of k), of v (and of z), of b (and of a)
};

Sizes sizes_of(const ModelConfig& model) {
  std::vector<FusedSection> s = sections_of(KeySplit::kGdnInProj, model);
  rows_of(s);  // no sum of these rows overflows
  return {s[0].rows, s[2].rows, s[4].rows};
}

Holding hold_flat(const RuleInput& in) {
  Sizes s = sizes_of(in.model);
  check_cells(in.model.gdn, in.part);
  i64 hidden = positive(in.tower.hidden, "the hidden size");
  expect_shape(in, 0, kFlatRoles[0], {2 * s.qk + s.v, hidden}, "2 * key heads * size + value heads * size");
  expect_shape(in, 1, kFlatRoles[1], {s.v, hidden}, "value heads * size");
  for (int slot : {2, 3}) expect_shape(in, slot, kFlatRoles[slot], {s.heads, hidden}, "value heads");
  RowBlock blocks[] = {{0, 0, s.qk}, {0, s.qk, s.qk}, {0, 2 * s.qk, s.v},
                       {1, 0, s.v},  {2, 0, s.heads}, {3, 0, s.heads}};
  return hold_blocks(blocks, in.sources[0].shape, in.part, "a section of in_proj");
}

Holding hold_grouped(const RuleInput& in) {
  Sizes s = sizes_of(in.model);
  const GdnConfig& gdn = in.model.gdn;
  check_cells(gdn, in.part);
  i64 hidden = positive(in.tower.hidden, "the hidden size");
  expect_shape(in, 0, kGroupedRoles[0], {2 * s.qk + 2 * s.v, hidden},
               "2 * key heads * size + 2 * value heads * size");
  expect_shape(in, 1, kGroupedRoles[1], {2 * s.heads, hidden}, "2 * value heads");
  ItemRange own = own_part(gdn.key_heads, in.part, "the number of linear-attention key heads");
  i64 dk = gdn.key_dim, v = s.v / gdn.key_heads, heads = s.heads / gdn.key_heads;  // of one key head
  i64 qkvz = 2 * dk + 2 * v, ba = 2 * heads;
  RowRuns rows(hidden);
  auto add = [&](i32 slot, i64 first, i64 n, i64 step) {
    rows.add(slot, own.begin * step + first, n, step, own.items());
  };
  add(0, 0, dk, qkvz);
  add(0, dk, dk, qkvz);
  add(0, 2 * dk, v, qkvz);
  add(0, 2 * dk + v, v, qkvz);
  add(1, 0, heads, ba);
  add(1, heads, heads, ba);
  return {LocalShape{{own.items() * (qkvz + ba), hidden}}, 0, rows.take(), 0};
}

Shape conv_shape(const RuleInput& in, const Sizes& s) {
  const i64 rows = 2 * s.qk + s.v;
  if (in.sources[0].shape.rank() == 1) return {rows};
  return {rows, 1, positive(in.model.gdn.conv_kernel, "the convolution's width")};
}

Holding hold_conv(const RuleInput& in) {
  Sizes s = sizes_of(in.model);
  check_cells(in.model.gdn, in.part);
  const Shape expected = conv_shape(in, s);
  expect_shape(in, 0, kConvRoles[0], expected, "2 * key heads * size + value heads * size");
  RowBlock blocks[] = {{0, 0, s.qk}, {0, s.qk, s.qk}, {0, 2 * s.qk, s.v}};
  return hold_blocks(blocks, expected, in.part, "a section of the convolution");
}

// A flat section: rows of a source, of which each key head has equally many.
struct HeadSection {
  i32 slot = 0;
  i64 first_row = 0, rows = 0;
};

// The rows of each of the cell's key heads, section by section, in the order of the heads.
Holding hold_by_head(const RuleInput& in, std::initializer_list<HeadSection> sections) {
  const i64 heads = in.model.gdn.key_heads;
  check_cells(in.model.gdn, in.part);
  const ItemRange own = own_part(heads, in.part, "the number of linear-attention key heads");
  const Shape& like = in.sources[0].shape;
  i64 of_head = 0;
  for (const HeadSection& s : sections) of_head += s.rows / heads;
  RowRuns rows(like.row_items());
  for (i64 head = own.begin; head < own.end; head++)
    for (const HeadSection& s : sections)
      rows.add(s.slot, s.first_row + head * (s.rows / heads), s.rows / heads);
  return {LocalShape{like.with_dim(0, own.items() * of_head)}, 0, rows.take(), 0};
}

Holding hold_qkvz(const RuleInput& in) {
  const Sizes s = sizes_of(in.model);
  const i64 hidden = positive(in.tower.hidden, "the hidden size");
  expect_shape(in, 0, kQkvzRoles[0], {2 * s.qk + s.v, hidden}, "2 * key heads * size + value heads * size");
  expect_shape(in, 1, kQkvzRoles[1], {s.v, hidden}, "value heads * size");
  return hold_by_head(in, {{0, 0, s.qk}, {0, s.qk, s.qk}, {0, 2 * s.qk, s.v}, {1, 0, s.v}});
}

Holding hold_ba(const RuleInput& in) {
  const Sizes s = sizes_of(in.model);
  const i64 hidden = positive(in.tower.hidden, "the hidden size");
  for (int slot : {0, 1}) expect_shape(in, slot, kBaRoles[slot], {s.heads, hidden}, "value heads");
  return hold_by_head(in, {{0, 0, s.heads}, {1, 0, s.heads}});
}

Holding hold_conv_by_head(const RuleInput& in) {
  const Sizes s = sizes_of(in.model);
  expect_shape(in, 0, kConvRoles[0], conv_shape(in, s), "2 * key heads * size + value heads * size");
  return hold_by_head(in, {{0, 0, s.qk}, {0, s.qk, s.qk}, {0, 2 * s.qk, s.v}});
}

constexpr Rule kRules[] = {
    {"gdn_in_proj", kFlatRoles, "q, k, v, z, b, a of each cell's heads, from flat tensors", hold_flat,
     KeySplit::kGdnInProj},
    {"gdn_in_proj_grouped", kGroupedRoles,
     "q, k, v, z, b, a of each cell's heads, from tensors grouped by key head", hold_grouped,
     KeySplit::kGdnInProj},
    {"gdn_conv", kConvRoles, "the channels of q, k, v of each cell's heads", hold_conv, KeySplit::kGdnConv},
    {"gdn_qkvz", kQkvzRoles, "q, k, v, z of each key head, one head after the other", hold_qkvz},
    {"gdn_ba", kBaRoles, "b and a of each key head, one head after the other", hold_ba},
    {"gdn_conv_by_head", kConvRoles, "the channels of q, k, v of each key head, one head after the other",
     hold_conv_by_head},
};

}  // namespace

std::span<const Rule> gdn_rules() { return kRules; }

}  // namespace mckpt::impl
