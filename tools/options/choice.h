// Which tensors a command is about: all, or those that a glob or a regular expression chooses.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/store/store.h"
#include "tools/options/command_line.h"

namespace mckpt {

struct TensorChoice {
  std::string pattern;  // "" chooses all
  bool regex = false;

  // Declares GLOB and --regex.
  void declare(CommandLine& line);
  // The chosen tensors in natural order. Throws kUsage for a bad expression, and kNoSuchTensor with the
  // nearest name when a pattern chooses nothing.
  std::vector<i64> choose(const Store& store) const;
  // The same of any list of names, in its order: indices into it.
  std::vector<i64> choose(std::span<const std::string_view> names) const;
};

// The tensor of that name. Throws kNoSuchTensor with the nearest one.
i64 tensor_named(const Store& store, const std::string& name);

}  // namespace mckpt
