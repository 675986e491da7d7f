// Tolerances as people write them.
//
//   rtol:1e-3                         for every tensor that no rule names
//   *.norm.weight=atol:1e-6,ulp:4     for tensors of these names
#pragma once

#include <string_view>

namespace mckpt::impl {

struct ToleranceRules;

// Whether the number can be one of a tolerance: finite, and not negative.
bool is_tolerance(double number);

// Adds the rule behind those that are there. Throws kUsage.
void add_tolerance(ToleranceRules& rules, std::string_view text);

}  // namespace mckpt::impl
