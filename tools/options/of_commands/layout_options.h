// The options of `mckpt layout`, whether it lays out a model or shapes.
#pragma once

#include <optional>
#include <string>

#include "core/base/int.h"
#include "mappings/fsdp/memory.h"
#include "tools/options/checkpoint_flags.h"
#include "tools/options/run_flags.h"

namespace mckpt::impl {

class CommandLine;

// A layout of shapes takes few of these; refuse_for_shapes() refuses the others.
struct LayoutFlags {
  std::optional<i64> world, group;
  i64 rank = 0;
  std::optional<std::string> dtype;
  bool regex = false, memory = false;
  std::string gradients = "fp32", moments = "fp32";
  GridFlags grid;
  FsdpFlags fsdp;
  SpellingFlags spelling;
  PatternFlag pattern;
  ValueFlags values{"auto"};
  CheckpointFlags source;

  void declare(CommandLine& line);
  // The types of `memory`. Throws kUsage for a word that names none.
  MemoryTypes memory_types() const;
  // Throws kUsage for options that have a meaning only for a model.
  void refuse_for_shapes(const CommandLine& line) const;
};

}  // namespace mckpt::impl
