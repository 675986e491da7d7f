// The options of commands whose ranks watch each other, and the one place where such a command joins its job.
//
//   --rank-timeout SECONDS     a rank that sends no heartbeat for so long is taken for lost
//   --phase-timeout SECONDS    a rank that makes no progress for so long is taken for hanging
#pragma once

#include "runtime/watch/limits.h"

namespace mckpt::impl {

class CommandLine;

// The limits of runtime/watch with their options. Nothing happens until join().
struct RankLimits : WatchLimits {
  void declare(CommandLine& line);
  // Throws kUsage. Called when the line is parsed.
  void check() const;
  // Joins the job and watches its ranks from here on. Signals that ask to stop set the stop flag from then
  // on, too: a launcher sends them to all ranks when one of them is dead, and the others should first report
  // that.
  void join() const;
};

}  // namespace mckpt::impl
