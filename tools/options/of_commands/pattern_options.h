// The options of `mckpt pattern`: a pattern, or the old ratios, and which question about it is asked.
#pragma once

#include <optional>
#include <string>

#include "core/base/int.h"
#include "core/hybrid/pattern.h"
#include "core/hybrid/segment.h"

namespace mckpt::impl {

class CommandLine;

// The request of the command line. `pattern` and `ratios` exclude each other.
struct PatternOptions {
  std::optional<std::string> pattern, ratios;
  std::string dialect = "grouped";
  bool segment = false;
  std::optional<i64> pp_size, pp_rank;
  StageRequest stage;

  // Declares the options, parses the line and checks them against each other. Throws kUsage.
  void parse(CommandLine& line);

  Dialect chosen_dialect() const { return dialect == "flat" ? Dialect::kFlat : Dialect::kGrouped; }
  bool wants_stage() const {
    return pp_size || pp_rank || stage.vp_stage || stage.first_stage_layers || stage.last_stage_layers;
  }
};

}  // namespace mckpt::impl
