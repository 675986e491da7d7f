// compare_sides(): two sides that are open, compared: their objects, the types that were asked for, and the bytes of the
// plan from one to the other. Nothing beside the checkpoints is looked at.
#pragma once

#include <vector>

namespace mckpt::impl {

class Comparison;
class Observer;
struct CompareOptions;
struct Oddities;
struct Sides;
struct VerifyReport;

// The request of a comparison, and the places for findings. References only; it lives during one comparison.
struct Comparing {
  const CompareOptions& options;
  Comparison& comparison;
  Observer& observer;
  VerifyReport& report;
};

// Whether everything was compared and is equal. Adds the damage of both sides to `oddities`. Throws what a Pairing and
// Comparison::run() throw.
bool compare_sides(const Sides& sides, const Comparing& c, std::vector<Oddities>& oddities);

}  // namespace mckpt::impl
