// TensorChoice: some of the tensors of a checkpoint, chosen by a glob or a regular expression over their
// names.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;

struct TensorChoice {
  std::string pattern;  // "" chooses all
  bool regex = false;   // the pattern is a regular expression and not a glob

  // The chosen tensors in natural order. Throws kUsage for an invalid expression, and kNoSuchTensor with the
  // nearest name when a pattern chooses nothing.
  std::vector<i64> choose(const Store& store) const;
  // The chosen ones of a list of names, in its order: indices into it.
  std::vector<i64> choose(std::span<const std::string_view> names) const;
};

// The tensor of that name. Throws kNoSuchTensor with the nearest name, or the finding that explains why the
// store left the tensor out.
i64 tensor_named(const Store& store, const std::string& name);

}  // namespace mckpt::impl
