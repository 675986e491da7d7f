// Where the values of two pickles differ. Values are compared, not bytes: other writers have other protocols,
// share other parts and keep dictionaries in another order.
//
//   Namespace {lr: 0.5, betas: [0.9, 0.95]}   {lr: 0.5, betas: [0.9, 0.99]}  -->  .betas[1]: 0.95, 0.99
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/pickle/value.h"

namespace mckpt::impl {

struct PickleDifference {
  std::string at;               // inside the value; "": all of it
  std::string expected, found;  // as Python would print them; "nothing" where a side has none
};

struct PickleDifferences {
  std::vector<PickleDifference> first;
  i64 count = 0;  // of all
};

// The first `most` of them. `same_storage` is asked of storages of one type and size, whose bytes no pickle
// has.
PickleDifferences pickle_differences(
    PickleValue expected, PickleValue found, i64 most,
    const std::function<bool(PickleValue expected, PickleValue found)>& same_storage);

}  // namespace mckpt::impl
