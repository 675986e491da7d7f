// Replicated: every cell holds all of it. Used for norms, routers, biases of row-parallel layers, and the
// patch and position embeddings of a vision tower.
//
// The output norm of gated delta nets is the one tensor whose values change: Megatron stores all norms of
// such a model less one; Hugging Face stores all of them less one except this one.
//
//   linear_attn.norm.weight in the file   1.25  0.75  1        ->   in Megatron   0.25  -0.25  0
//
// The rows of a matrix, or the items of a vector, can be a parameter each, which `replicate_slice` takes as a
// vector; Row::slice says which row.
//
// Export adds the one again. The sum is computed in the wider of the two types; core/items/item_cast.h counts
// values that the constant rounds.
#include "core/base/error.h"
#include "core/items/item_run.h"
#include "core/items/shape.h"
#include "mappings/config.h"
#include "mappings/rules/blocks.h"
#include "mappings/rules/expert.h"
#include "mappings/rules/families.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kRoles[] = {"weight"};

Holding hold_all(const RuleInput& in) {
  const Shape& source = in.sources[0].shape;
  return {LocalShape{source}, -1, {{0, 0, source.items(), {}, {}}}, 0};
}

Holding hold_less_one(const RuleInput& in) {
  expect_rank(in, 0, kRoles[0], 1, 1);
  Holding holding = hold_all(in);
  holding.addend = -1;
  return holding;
}

Holding hold_only_row(const RuleInput& in) {
  expect_rank(in, 0, kRoles[0], 2, 2);
  const Shape& source = in.sources[0].shape;
  expect_shape(in, 0, kRoles[0], source.with_dim(0, 1), "a matrix of one row");
  return {LocalShape{Shape{source[1]}}, -1, {{0, 0, source.items(), {}, {}}}, 0};
}

// The number of the expert is the number of the slice.
Holding hold_slice(const RuleInput& in) {
  expect_rank(in, 0, kRoles[0], 1, 2);
  const Shape& source = in.sources[0].shape;
  const i64 row = source.rank() == 1 ? 1 : source[1];
  if (in.expert < 0 || in.expert >= source[0])
    throw Error(Code::kSourceShape, cat("the source ", kRoles[0], " has no such row"))
        .expected(cat("more than ", in.expert, " rows"))
        .found(to_string(source));
  return {LocalShape{Shape{row}}, -1, {{0, in.expert * row, row, {}, {}}}, 0};
}

Holding hold_turned(const RuleInput& in) {
  expect_rank(in, 0, kRoles[0], 2, 2);
  const Shape& source = in.sources[0].shape;
  return {
      LocalShape{{source[1], source[0]}}, -1, {columns_as_rows(0, source[0], source[1], {1, source[1]})}, 0};
}

// Zeros of padding plus one.
Holding hold_ones(const RuleInput& in) {
  i64 dim = positive(in.tower.head_dim, "the size of a head");
  return {LocalShape{Shape{dim}}, -1, {{kPaddingSlot, 0, dim, {}, {}}}, 1};
}

constexpr Rule kRules[] = {
    {"replicate", kRoles, "every cell has the whole tensor", hold_all},
    {"replicate_row", kRoles, "every cell has the only row of a matrix, as a vector", hold_only_row},
    {"replicate_slice", kRoles, "every cell has one row of a matrix, or one item of a vector, as a vector",
     hold_slice},
    {"replicate_transposed", kRoles, "every cell has the whole matrix, transposed", hold_turned},
    {"head_norm_of_ones",
     {},
     "every cell has ones, as many as a head has items; no tensor of the file is read",
     hold_ones},
    {"zero_centered_norm", kRoles, "every cell has the whole tensor, less one", hold_less_one},
};

}  // namespace

std::span<const Rule> replicate_rules() { return kRules; }

}  // namespace mckpt::impl
