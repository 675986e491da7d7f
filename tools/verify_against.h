// verify --against: whether a checkpoint holds exactly what converting another one would write. The same plan
// that converts is carried out, with a comparison in place of the writing.
#pragma once

#include "io/verify.h"
#include "tools/checkpoint_model.h"
#include "tools/layout_flags.h"

namespace mckpt {

struct AgainstFlags {
  std::optional<std::string> source;
  CheckpointModelFlags model;
  ValueFlags values{"none"};

  void declare(CommandLine& line);
};

// Adds the check "against" with its findings, and "casts" where what is equal is no longer what the source
// holds. Returns whether both sides are equal. Throws what opening either side throws, and kUnaccounted where
// a checkpoint lacks parameters of the model.
bool verify_against(const std::string& path, const AgainstFlags& against, int threads,
                    const GlobalFlags& flags, VerifyReport& report);

}  // namespace mckpt
