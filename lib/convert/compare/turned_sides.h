// Pairs that are compared in one order alone, whichever side was given first:
//
//   tested                   source
//   Megatron's               with the model's own names   the only order that can be planned
//   a Hugging Face folder    Megatron's                   in a list of differences, under the model's names
//
// Given the other way round they are turned, and the findings are turned back, so that the answer and every
// refusal are the same as in the first order.
#pragma once

#include <string>

namespace mckpt::impl {

class Store;
struct VerifyReport;

// Whether `a`, the tested side, has to be the source. `listed`: a list of differences is made.
bool has_turned_sides(const Store& a, const Store& b, bool listed);

// Exchanges the sides in all that the report got since it had `before`; with `values`, also what was expected
// and found in tensors. Findings and differences in files are of the side in `root`, and say so.
void turn_sides(VerifyReport& report, const VerifyReport& before, const std::string& root, bool values);

}  // namespace mckpt::impl
