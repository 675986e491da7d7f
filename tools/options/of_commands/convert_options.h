// The options that every mode of `mckpt convert` takes beside the fields of its struct.
//
//   declare()         --dry-run, --overwrite, --report, --card, --no-sync, --threads, --max-memory
//                     --resume                        modes that can continue
//                     --rank-timeout, --phase-timeout   modes whose ranks share the work
//   declare_casts()   --allow-overflow                modes that cast values
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "mckpt/run_options.h"
#include "tools/options/rank_limits.h"

namespace mckpt::impl {

class CommandLine;
class OutputRules;

// Plain values with their defaults; an option that a mode does not declare keeps its default.
struct ConvertOptions {
  std::string source, target;  // of the struct, once the line is parsed
  mckpt::RunOptions run;
  std::optional<std::string> report;
  bool dry_run = false;
  RankLimits ranks;

  ConvertOptions();
  void declare(CommandLine& line, bool resumes, bool shares_work);
  void declare_casts(CommandLine& line);
  // Throws kUsage for options that exclude each other. Called when the line is parsed.
  void check() const;
  // Throws where a file of --report or --card cannot be made, or would do harm: before anything is planned,
  // and when it is known what is read and made. It may be in DST, but not in the result there.
  void check_report() const;
  void check_report(const OutputRules& rules, const std::vector<std::string>& results) const;

 private:
  void check_place(const std::string& option, const std::string& file) const;
};

}  // namespace mckpt::impl
