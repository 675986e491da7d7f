// Where the values of two pickles differ. Values are compared, not bytes: other writers use other
// protocols, share other parts and order dicts differently. Values of two Python types differ: 1 and True, a
// tuple and a torch.Size, a set and a frozenset.
//
//   Namespace {lr: 0.5, betas: [0.9, 0.95]}   {lr: 0.5, betas: [0.9, 0.99]}  -->  .betas[1]: 0.95, 0.99
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/pickle/value.h"

namespace mckpt::impl {

// One place where the values differ, as `diff` prints it.
struct PickleDifference {
  std::string at;               // inside the value; "": all of it
  std::string expected, found;  // as Python would print them; "nothing" where a side has none
};

// The first differences, and how many there are.
struct PickleDifferences {
  std::vector<PickleDifference> first;
  i64 count = 0;  // of all
};

// Returns the first `most` of them. A value that cannot be compared (a tensor in a set, a nesting deeper than a
// pickler writes) is a difference, whose `found` says why. `same_storage` is called for two storages of one type and size, whose
// bytes are outside the pickles.
PickleDifferences pickle_differences(
    PickleValue expected, PickleValue found, i64 most,
    const std::function<bool(PickleValue expected, PickleValue found)>& same_storage);

}  // namespace mckpt::impl
