// verify --against: whether a checkpoint holds exactly what converting another one would write. The same plan
// that converts is carried out, with a comparison in place of the writing.
#pragma once

#include "io/verify/verify.h"
#include "tools/options/checkpoint_flags.h"
#include "tools/options/layout_flags.h"

namespace mckpt {

struct AgainstFlags {
  std::optional<std::string> source;
  CheckpointFlags checkpoint;
  std::optional<i64> path_tp, path_etp;  // of PATH, where both are checkpoints
  ValueFlags values{"none"};

  void declare(CommandLine& line);
  CheckpointOptions model() const { return checkpoint.options(); }
};

// Adds what a Comparison finds, and the check "casts" where what is equal is no longer what the source holds.
// Returns whether both sides are equal. `there`: what lies at `path`. Throws what opening the source throws,
// what is wrong with either side other than single records, and kUnaccounted where a checkpoint lacks
// parameters of the model.
bool verify_against(std::unique_ptr<Store> there, const std::string& path, const AgainstFlags& against,
                    int threads, const GlobalFlags& flags, VerifyReport& report);

}  // namespace mckpt
