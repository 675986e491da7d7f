// The arguments PATH... [GLOB] and --regex: several checkpoints, and which of their tensors a command is
// about. A B [GLOB] of a command about two.
//
//   mckpt ls a b                      all tensors of two checkpoints
//   mckpt ls a b '*.layers.0.*'       of both, the tensors that match
//
// The last of several arguments is the GLOB unless a file or folder has that name. Without GLOB all tensors
// are chosen.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/choice/tensor_choice.h"

namespace mckpt::impl {

class CommandLine;
class Store;

// Throws kUsage for a GLOB without a letter: perhaps a variable of a script that has no value.
void refuse_empty_glob(const std::string& glob);

// declare(), parse() of the line, settle(); then the members are what the user asked for.
class ChosenPaths {
 public:
  // `what`: what PATH is, for the help.
  void declare(CommandLine& line, const std::string& what = "checkpoints: files or folders");
  void settle();  // takes the GLOB from the end of the paths; throws kUsage for --regex without one
  // The only path. Throws kUsage that names `why`, such as "--as", if there are several.
  const std::string& only(std::string_view why) const;
  // As TensorChoice::choose(), but an error says that the GLOB might have been meant as a path.
  std::vector<i64> choose(const Store& store) const;

  bool several() const { return paths.size() > 1; }

  std::vector<std::string> paths;
  TensorChoice choice;
};

// [GLOB] and --regex behind the two checkpoints of a command.
class ChosenOfTwo {
 public:
  void declare(CommandLine& line);
  // Throws kUsage for a third checkpoint in the place of the GLOB, and for a GLOB in the place of `a` or `b`.
  void settle(const std::string& a, const std::string& b);

  TensorChoice choice;

 private:
  std::optional<std::string> glob_;
};

}  // namespace mckpt::impl
