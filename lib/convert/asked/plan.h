// Plans what the struct of a conversion asks for (lib/options/mckpt): the one place in which its words become
// the engine's options. The library's plan() and the program call it alike.
//
//   ToHf{.source = "ckpt", .target = "out", .dtype = "bf16"}  ->  plan_export({.types = {kGiven, kBF16}, ...})
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"
#include "mckpt/run_options.h"
#include "options/kinds.h"

namespace mckpt::impl {

struct Conversion;
struct RunOptions;

// The circumstances of planning, beside the conversion itself.
struct Planning {
  int threads = 1;                            // that plan
  int rank = 0;                               // of this process
  bool model_alone = false;                   // to-fsdp refuses a checkpoint of Megatron
  std::vector<std::string> helper_folders{};  // where helper programs are looked for first
};

// Reads headers and writes nothing. Throws kUsage for a word that is not known, and whatever the planner
// throws.
Conversion plan_asked(const AnyConversion& what, const Planning& how);

// How the run is carried out.
RunOptions run_options(const mckpt::RunOptions& options);

// The grid of the training run that a conversion is for; null if it has none.
const mckpt::Grid* asked_grid(const AnyConversion& what);

}  // namespace mckpt::impl
