// The flags that say how to read a sharded checkpoint: its model, the ranks that wrote it, and damage that is
// accepted.
//
//   mckpt export ckpt out_hf --assets Qwen3-30B-A3B --source-tp 2 --accept MC1315
//
// A class of flags has the form of all files here: declare() puts the options on a command's line, which
// later fills the members; options() makes the library's struct of them and throws kUsage for values that
// make no sense.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/error_code.h"
#include "core/base/int.h"
#include "tools/options/hf_model_flags.h"

namespace mckpt::impl {

class CommandLine;
struct CheckpointOptions;

// --accept: codes of damage despite which a checkpoint is converted.
class AcceptFlag {
 public:
  void declare(CommandLine& line);
  // Throws kUsage for the code of damage that leaves nothing to convert.
  std::vector<Code> codes() const;

 private:
  std::vector<std::string> names_;  // "MC1315"
};

// All flags of this kind, for commands that open a checkpoint as a model (export, verify --against, reshard).
class CheckpointFlags {
 public:
  void declare(CommandLine& line);
  // Declare these flags in parts: --assets, and the rest; of the rest, those that a model has, too. `what`: the
  // help of --assets.
  void declare_assets(CommandLine& line, const std::string& what);
  void declare_rest(CommandLine& line);
  void declare_of_model(CommandLine& line);
  const std::optional<std::string>& assets() const { return assets_; }
  // Throws what AcceptFlag::codes() throws.
  CheckpointOptions options() const;

 private:
  std::optional<std::string> assets_;
  std::optional<i64> source_tp_, source_etp_;
  AcceptFlag accept_;
  HfModelFlags model_;
};

}  // namespace mckpt::impl
