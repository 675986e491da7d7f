// The counts that a comparison makes of tensors that differ.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "io/values/distance.h"

namespace mckpt::impl {

class Store;
struct VerifyReport;

struct Counting {
  bool all = false;  // every tensor, not only those that findings name; and the names of all compared tensors
  bool first_decides =
      false;            // all that is asked is whether the two are alike: nothing is read after a difference
  bool turned = false;  // the caller exchanged the sides: what is expected is of the tested one
  std::function<Tolerance(const std::string& tensor)> within{};  // empty: only equal items are alike
  // Called once with the two sides under the names by which they were compared, if each tensor was compared
  // with the tensor of its name.
  std::function<void(const Store& tested, const Store& source, const VerifyReport& report)> when_compared{};
};

// Writes the bits of `expected` over every NaN of `found` where both have one: casts that round give a NaN
// other bits in other programs. Types that no cast makes stay as they are. pre: stretches of as many whole
// items.
void adopt_nans(DType dtype, std::span<const u8> expected, std::span<u8> found);

// How two stretches of a tensor differ.
struct StretchCount {
  i64 items = 0;                            // that differ
  std::optional<ValueDistance> distance{};  // where the type has one
};
// pre: stretches of the same number of whole items of the meter's type.
StretchCount count_differences(const DistanceMeter& by, std::span<const u8> found,
                               std::span<const u8> expected, const Tolerance& within);

}  // namespace mckpt::impl
