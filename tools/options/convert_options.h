// The options that every mode of `mckpt convert` takes.
//
//   declare()            SRC, DST, --dry-run, --overwrite, --report, --card, --no-sync, --threads, --max-memory
//   declare_choice()     --include, --exclude                       modes that may write some tensors only
//   declare_resume()     --resume, --rank-timeout, --phase-timeout  modes that can continue, under mpirun too
//   declare_casts()      --allow-overflow                           modes that cast values
//   declare_iteration()  --iteration                                modes that write an iteration of a run
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "tools/options/rank_limits.h"

namespace mckpt::impl {

class CommandLine;
class OutputRules;

// Plain values with their defaults; an option that a mode does not declare keeps its default.
struct ConvertOptions {
  std::string source, target;
  std::optional<std::string> report;
  std::vector<std::string> cards;
  std::string command;  // the command line, for the cards
  std::vector<std::string> include, exclude;
  std::optional<i64> iteration;
  bool overwrite = false, dry_run = false, no_sync = false, resume = false;
  bool allow_overflow = false;
  int threads;
  i64 memory_bytes = i64{256} << 20;
  RankLimits ranks;

  ConvertOptions();
  // `source_is` and `target_is` are the help texts of SRC and DST: "a .pt file".
  void declare(CommandLine& line, const std::string& source_is, const std::string& target_is);
  // Of modes that write some tensors and not others; of modes that can go on with what was begun, and whose
  // ranks share the work.
  void declare_choice(CommandLine& line);
  void declare_resume(CommandLine& line);
  // Of modes that cast values.
  void declare_casts(CommandLine& line);
  // Of modes that write an iteration of a run. `otherwise`: what is written without it.
  void declare_iteration(CommandLine& line, const std::string& otherwise);
  // Throws kUsage for options that exclude each other, and for an iteration that is none. Called when the
  // line is parsed.
  void check() const;
  // Throws where a file of --report or --card cannot be made, or would do harm: before anything is planned,
  // and when it is known what is read and made. It may be in DST, but not in the result there.
  void check_report() const;
  void check_report(const OutputRules& rules, const std::vector<std::string>& results) const;

 private:
  void check_place(const std::string& option, const std::string& file) const;
};

}  // namespace mckpt::impl
