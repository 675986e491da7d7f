// Pairs that can be compared in one order alone: the tensors of a Megatron checkpoint with what importing a
// checkpoint with the model's own names would write. Given the other way round they are turned, and the
// findings are turned back, so that the answer and every refusal are the same as in the first order.
#pragma once

#include <string>

namespace mckpt::impl {

class Store;
struct VerifyReport;

// Whether `a` has the model's own names, and `b` is a checkpoint of Megatron's.
bool has_turned_sides(const Store& a, const Store& b);

// Exchanges the sides in all that the report got since it had `before`; with `values`, also what was expected
// and found in tensors. Findings about files are of the side in `root`, and say so.
void turn_sides(VerifyReport& report, const VerifyReport& before, const std::string& root, bool values);

}  // namespace mckpt::impl
