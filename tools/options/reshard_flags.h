// The flags that say what `convert reshard` and `convert to-fsdp` read: a checkpoint, and states of the
// optimizer in files of the ranks.
//
//   mckpt convert reshard ckpt out --tp 4 --dp 2                         weights and states from ckpt
//   mckpt convert reshard ckpt out --tp 4 --dp 2 --weights-only          weights only
//   mckpt convert reshard ckpt out --tp 4 --dp 2 --rank-states states    states from states/..._rank_R.pt
#pragma once

#include <optional>
#include <string>

#include "core/base/int.h"
#include "tools/options/checkpoint_flags.h"

namespace mckpt::impl {

class CommandLine;
struct ReshardSourceOptions;

// The flags of CheckpointFlags and those of optimizer states.
class ReshardFlags {
 public:
  // Of reshard, which can keep names: with --keep-names.
  void declare(CommandLine& line);
  // Of to-fsdp, and of hf-to-fsdp, which reads models alone. `assets`: the help of --assets.
  void declare_of_fsdp(CommandLine& line, const std::string& assets);
  void declare_of_model(CommandLine& line, const std::string& assets);
  // Throws kUsage for flags that exclude each other.
  ReshardSourceOptions options() const;

 private:
  void declare_states(CommandLine& line);

  CheckpointFlags checkpoint_;
  bool any_model_ = false, weights_only_ = false, keep_names_ = false;
  std::optional<std::string> rank_states_;
  std::optional<i64> source_ep_, source_hsdp_;
};

}  // namespace mckpt::impl
