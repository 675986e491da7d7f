// One expert of a tensor that has all of them. Hugging Face models store such tensors in several forms
// (output or input dimension first, gate and up in halves or in turn), with a rule for each form. The row of
// the model's table chooses the rule; the shape of the tensor cannot, because sizes may be equal: [8, 64, 64]
// fits both orientations.
#pragma once

#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

class Shape;
struct ItemRun;
struct Loop;
struct RuleInput;

// The numbers that every expert rule needs, all positive; their product times two fits 63 bits.
struct ExpertSizes {
  i64 experts, width;
  i64 hidden;  // the latent width if there is one
};

// Throws kModelNumbers, also if the expert does not exist.
ExpertSizes expert_sizes(const RuleInput& in);

// Throws kSourceShape; if the shape fits the other storage form, the help says so.
void expect_form(const RuleInput& in, std::string_view role, const Shape& expected, const Shape& other,
                 std::string_view other_rule);

// The columns of a matrix as rows: `columns.count` of them, `columns.stride` apart, the first at item
// `begin`. The matrix has `rows` rows of `row_items` items. Columns 1 and 2 of a [3, 4] matrix: begin 1,
// columns {1, 2} -> items 1 5 9, 2 6 10.
ItemRun columns_as_rows(i64 begin, i64 rows, i64 row_items, Loop columns);

}  // namespace mckpt::impl
