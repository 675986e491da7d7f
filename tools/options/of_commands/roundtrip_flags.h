// The request for a round trip: its command line, and the setup of the live model that follows from it.
#pragma once

#include <optional>
#include <string>

#include "core/base/int.h"
#include "core/hybrid/pattern.h"
#include "tools/options/hf_model_flags.h"
#include "tools/options/rank_limits.h"
#include "tools/options/run_flags.h"

namespace mckpt::impl {

class Comm;
class CommandLine;
class ModelMap;
struct LiveSetup;
struct RoundTripOptions;

// Plain values, and groups of flags that other commands have too.
struct RoundtripFlags {
  std::string source, device = "cpu", main_dtype = "fp32";
  std::optional<std::string> output, checkpoint;
  std::optional<LayerPattern> pattern;
  bool no_sync = false;
  int threads = 0;       // of a rank; 0: its share of the processors
  int most_threads = 0;  // that read for a rank's GPU; settle() sets it unless `threads` was given
  i64 repeat = 1;
  std::optional<std::string> until;
  bool logits = false, trust_remote_code = false;
  std::optional<std::string> python;
  HfModelFlags model_flags;
  GridFlags grid_flags;
  FsdpFlags fsdp_flags;
  SpellingFlags spelling_flags;
  PatternFlag pattern_flag;
  ValueFlags values{"auto"};
  RankLimits ranks;

  // Declares them, and takes what the line says. Throws kUsage.
  void parse(CommandLine& line);
  // Refuses what can be refused before the ranks of the job meet. Throws kUsage, and what StagedFolder::check
  // throws.
  void refuse_early() const;
  // Settles what depends on how many ranks share a host. Collective. Throws kUsage.
  void settle(Comm& world);
  // The setup for a job of so many ranks. pre: this outlives the setup.
  LiveSetup setup(const ModelMap& map, i64 world) const;
  // The note about padding of the vocabulary; "" if there is none.
  std::string vocab_note(const ModelMap& map, i64 world) const;
  RoundTripOptions round_trip() const;
};

}  // namespace mckpt::impl
