// compare_sides(): two sides that are open, compared: their objects, the types that were asked for, and the
// bytes of the plan from one to the other. Nothing beside the checkpoints is looked at.
#pragma once

#include <string>
#include <vector>

namespace mckpt::impl {

struct Comparing;
struct Oddities;
struct Sides;
struct VerifyReport;

// Whether everything was compared and is equal. Adds the damage of both sides to `oddities`. Throws what a
// Pairing and Comparison::run() throw.
bool compare_sides(const Sides& sides, const Comparing& c, std::vector<Oddities>& oddities);

// "2 tensors beside the model were": those that may be weights, and were not compared; "": there are none.
std::string counted_others(const VerifyReport& report);

}  // namespace mckpt::impl
