// The flags that say how to read a sharded checkpoint: its model, the ranks that wrote it, and damage that is accepted.
#pragma once

#include <optional>
#include <vector>

#include "core/base/error_code.h"
#include "core/base/int.h"
#include "tools/options/hf_model_flags.h"

namespace mckpt::impl {

class CommandLine;
struct CheckpointOptions;

// --accept
class AcceptFlag {
 public:
  void declare(CommandLine& line);
  // Throws kUsage for the code of damage that leaves nothing to convert.
  std::vector<Code> codes() const;

 private:
  std::vector<std::string> names_;  // "MC1315"
};

class CheckpointFlags {
 public:
  void declare(CommandLine& line);
  // Throws what AcceptFlag::codes() throws.
  CheckpointOptions options() const;

 private:
  std::optional<std::string> assets_;
  std::optional<i64> source_tp_, source_etp_;
  AcceptFlag accept_;
  HfModelFlags model_;
};

}  // namespace mckpt::impl
