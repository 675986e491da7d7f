// TensorChoice: some of the tensors of a checkpoint, chosen by a glob or a regular expression over their
// names.
//
//   {"*.mlp.*"}                     glob: '*' matches dots too, and the whole name must match
//   {"layers\\.[0-3]\\.", true}     regular expression: found anywhere in the name
//
// A pattern that chooses nothing is an error, with the nearest name, because it is nearly always a mistake.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;

// The user's choice; a value.
struct TensorChoice {
  std::string pattern;  // "" chooses all
  bool regex = false;   // the pattern is a regular expression and not a glob

  bool all() const { return pattern.empty(); }
  // Whether a name is chosen. Throws kUsage for an invalid expression; the test itself throws nothing.
  std::function<bool(std::string_view name)> test() const;

  // The chosen tensors in natural order. Throws kUsage for an invalid expression, and kNoSuchTensor with the
  // nearest name when a pattern chooses nothing.
  std::vector<i64> choose(const Store& store) const;
  // Chooses from a list of names: the indices of the chosen names, in the order of the list. Throws likewise.
  std::vector<i64> choose(std::span<const std::string_view> names) const;
};

// The tensor of that name. Throws kNoSuchTensor with the nearest name; or, if the store left the tensor out
// because of a problem, the finding about the problem.
i64 tensor_named(const Store& store, const std::string& name);

}  // namespace mckpt::impl
