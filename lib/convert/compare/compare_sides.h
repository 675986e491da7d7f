// compare_sides(): two sides that are open, compared: their objects, the types that were asked for, and the
// bytes of the plan from one to the other. Nothing beside the checkpoints is looked at.
#pragma once

#include <vector>

namespace mckpt::impl {

struct Comparing;
struct Oddities;
struct Sides;

// Whether everything was compared and is equal. Adds the damage of both sides to `oddities`. Throws what a
// Pairing and Comparison::run() throw.
bool compare_sides(const Sides& sides, const Comparing& c, std::vector<Oddities>& oddities);

}  // namespace mckpt::impl
