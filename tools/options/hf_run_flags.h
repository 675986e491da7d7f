// The flags that say what a training run makes of a Hugging Face model: how the model is read, the grid, the
// packing of Megatron-FSDP, names, and types of values. Commands that answer "what would such a run have?"
// share them.
#pragma once

#include <string>

#include "tools/options/hf_model_flags.h"
#include "tools/options/run_flags.h"

namespace mckpt::impl {

class CommandLine;
struct ShareRun;

struct HfRunFlags {
  // `params_dtype`: the default of --params-dtype.
  explicit HfRunFlags(std::string params_dtype) : values(std::move(params_dtype)) {}
  void declare(CommandLine& line);
  // The run that they describe, of which a rank is asked about. pre: the line was parsed.
  ShareRun run() const;

  HfModelFlags model;
  GridFlags grid;
  FsdpFlags fsdp;
  SpellingFlags spelling;
  PatternFlag pattern;
  ValueFlags values;
};

}  // namespace mckpt::impl
