// One expert of a tensor that has all of them. There are several storage forms with a rule each. The row of
// the model's table chooses the rule; the shape cannot, because sizes may be equal.
#pragma once

#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

class Shape;
struct ItemRun;
struct Loop;
struct RuleInput;

struct ExpertSizes {
  i64 experts, width;
  i64 hidden;  // the latent width if there is one
};

// Throws kModelNumbers, also if the expert does not exist.
ExpertSizes expert_sizes(const RuleInput& in);

// Throws kSourceShape; if the shape is that of the other storage form, the help says so.
void expect_form(const RuleInput& in, std::string_view role, const Shape& expected, const Shape& other,
                 std::string_view other_rule);

// The columns of a matrix as rows: `columns.count` of them, `columns.stride` apart, the first at item
// `begin`.
ItemRun columns_as_rows(i64 begin, i64 rows, i64 row_items, Loop columns);

}  // namespace mckpt::impl
